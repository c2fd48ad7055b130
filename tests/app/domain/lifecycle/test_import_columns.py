"""Import columns: what the columns of other programs' files are probably imported as."""

from __future__ import annotations

import csv
import io

import pytest

from app.domain.lifecycle import import_columns

# The names of each program's columns, and what is suggested for them.
FILES = {
    "HubSpot": "Record ID=external_id|First Name=first_name|Last Name=last_name|Email=email|Phone Number=phone"
    "|Mobile Phone Number=|Preferred language=locale|Time Zone=timezone|Unsubscribed from all email=opted_out",
    "HubSpot in German": "Datensatz-ID=external_id|Vorname=first_name|Nachname=last_name|E-Mail=email"
    "|Telefonnummer=phone|Bevorzugte Sprache=locale|Zeitzone=timezone|Unternehmen=",
    "HubSpot in French": "ID de l'enregistrement=external_id|Prénom=first_name|Nom=last_name|E-mail=email"
    "|Numéro de téléphone=phone|Langue préférée=locale|Fuseau horaire=timezone",
    "HubSpot in Spanish": "ID de registro=external_id|Nombre=first_name|Apellidos=last_name|Correo=email"
    "|Número de teléfono=phone|Idioma preferido=locale|Zona horaria=timezone|Etiquetas=tags",
    "HubSpot in Portuguese": "ID do registro=external_id|Nome=first_name|Sobrenome=last_name|E-mail=email"
    "|Número de telefone=phone|Fuso horário=timezone",
    "Mailchimp": "Email Address=email|First Name=first_name|Last Name=last_name|Address=|Phone Number=phone"
    "|MEMBER_RATING=|TIMEZONE=timezone|TAGS=tags",
    "Mailchimp in German": "Emailadresse=email|Vorname=first_name|Nachname=last_name|Telefonnummer=phone|TAGS=tags",
    "Mailchimp in French": "Adresse e-mail=email|Prénom=first_name|Nom de famille=last_name|Étiquettes=tags",
    "Mailchimp in Spanish": "Correo electrónico=email|Nombre=first_name|Apellido=last_name|Teléfono=phone",
    "Mailchimp in Portuguese": "Endereço de e-mail=email|Nome=first_name|Sobrenome=last_name|Celular=phone",
    "Shopify": "Customer ID=external_id|First Name=first_name|Last Name=last_name|Email=email"
    "|Accepts Email Marketing=|Default Address Phone=|Phone=phone|Note=|Tags=tags",
    "Google": "Name=|Given Name=first_name|Additional Name=|Family Name=last_name|Labels=tags"
    "|E-mail 1 - Label=|E-mail 1 - Value=email|Phone 1 - Label=|Phone 1 - Value=phone",
    "Intercom": "Name=name|User ID=external_id|Email=email|Phone=phone|Browser Language=locale"
    "|Unsubscribed from Emails=opted_out|Tag=tags",
    "ManyChat": "Contact ID=external_id|First Name=first_name|Last Name=last_name|Full Name=|Gender=|Phone=phone"
    "|Email=email|Language=locale|Timezone=timezone|Tags=tags",
    "A form": "Timestamp=|Your e-mail (never shared)=email|Phone (with country code)=phone|Vorname=first_name"
    "|Name=last_name",
    "Names in one column": "Nom=name|Courriel=email",
    "An export of ours": "id=|external_id=external_id|customer_id=|custom_fields=custom_fields"
    "|custom_fields.a=custom_field",
}


@pytest.mark.parametrize("program", FILES)
def test_the_columns_of_other_programs_are_known(program: str) -> None:
    names, targets = zip(*(column.split("=") for column in FILES[program].split("|")), strict=True)
    text = io.StringIO()
    csv.writer(text).writerow(names)

    columns = import_columns.read(io.BytesIO(text.getvalue().encode()))

    assert {column.header: column.target for column in columns} == dict(zip(names, targets, strict=True))
