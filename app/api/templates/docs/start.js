"use strict";
const docs = document.getElementById("docs");
// Without a null validatorUrl Swagger UI asks a server of its own about the document.
SwaggerUIBundle({ url: docs.dataset.document, domNode: docs, deepLinking: true, validatorUrl: null });
