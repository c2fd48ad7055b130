"use strict";
const docs = document.getElementById("docs");

// The bundled Swagger UI supports only OpenAPI 3.0. Of the features of 3.1, only types with null need conversion.
function asOlder(value) {
  if (Array.isArray(value)) return value.map(asOlder);
  if (value === null || typeof value !== "object") return value;
  const older = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, asOlder(inner)]));
  if (!Array.isArray(older.type)) return older;
  const types = older.type.filter((type) => type !== "null");
  return { ...older, type: types.length === 1 ? types[0] : undefined, nullable: types.length < older.type.length };
}

fetch(docs.dataset.document).then((answer) => answer.json()).then((document) => {
  const spec = { ...asOlder(document), openapi: "3.0.3" };
  // Without a null validatorUrl, Swagger UI sends the document's address to a server of its own.
  SwaggerUIBundle({ spec, domNode: docs, deepLinking: true, validatorUrl: null });
});
