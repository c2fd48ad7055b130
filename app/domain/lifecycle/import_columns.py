"""Import columns: maps a table's columns to fields of contacts, if their names do not say so."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO

from app.domain.lifecycle.import_lines import LONGEST_LINE_BYTES
from app.domain.lifecycle.import_texts import Lines, opened
from app.errors import Fault, Invalid
from app.lib import ids
from app.lib.cells import unguarded

PLAIN = ("external_id", "email", "phone", "first_name", "last_name", "locale", "timezone")
CUSTOM = "custom_fields."
# Further targets of a column. NOTHING: left out. NAME: a full name. FIELD: a custom field named like the column. ID and
# FIELDS are for exported files: our own id, and all custom fields as a JSON object.
NOTHING, NAME, FIELD, ID, FIELDS = "", "name", "custom_field", "id", "custom_fields"
TARGETS: Sequence[str] = (
    *(NOTHING, "email", "phone", "external_id", NAME, "first_name", "last_name", "locale", "timezone"),
    *("tags", "opted_out", FIELD, FIELDS, ID),
)
MOST_COLUMNS = 200
SHOWN_VALUES = 3
_LOOKED_AT = 20  # rows to guess targets from
_DELIMITERS = ",;\t"
_NAMED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)
_MOST_LINES_OF_NAMES = 50
_REMARK = re.compile(r"\([^)]*\)")  # as in "Phone (with country code)"
# A cell in quotation marks, and a quotation mark whose cell continues on the next line.
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_OPEN = re.compile(r'(?:^|[,;\t|])\s*"')
# Column names of other programs in English, German, French, Spanish and Portuguese, reduced to letters without accents
# and digits.
_GUESSES = {
    "email": """email emailaddress primaryemail workemail mail emailadresse adresseemail adressemail courriel
        correo correoelectronico direcciondecorreoelectronico enderecodeemail""",
    "phone": """phone phonenumber mobile mobilenumber mobilephone mobilephonenumber cellphone tel telephone whatsapp
        whatsappnumber whatsappphonenumber telefon telefonnummer handy handynummer mobilnummer mobiltelefon
        mobiltelefonnummer rufnummer numerodetelephone numerodetelephonemobile telephonemobile telephoneportable
        portable telefono telefonomovil movil numerodetelefono numerodetelefonomovil telefone telefonecelular celular
        telemovel numerodetelefone numerodetelefonecelular numerodecelular numerodotelefone""",
    "external_id": """externalid id customerid customernumber userid contactid recordid subscriberid kundennummer
        kundenid datensatzid numeroclient idclient numerodeclient identifiantclient iddelenregistrement
        numerodecliente idcliente iddecliente iddelcliente idderegistro iddelregistro iddoregistro iddocliente""",
    NAME: """name fullname contact contactname displayname kontakt kontaktname vollername vollstandigername nom
        nomcomplet nombre nombrecompleto nombreyapellidos nome nomecompleto""",
    "first_name": """firstname givenname forename fname vorname prenom primernombre nombredepila primeironome
        nomeproprio""",
    "last_name": """lastname surname familyname lname nachname familienname nomdefamille apellido apellidos sobrenome
        apelido apelidos ultimonome""",
    "locale": """locale language preferredlanguage browserlanguage sprache bevorzugtesprache langue languepreferee
        idioma idiomapreferido idiomadepreferencia lingua""",
    "timezone": "timezone zeitzone fuseauhoraire zonahoraria husohorario fusohorario",
    "tags": "tags tag labels label etiketten schlagworter etiquettes etiquette etiquetas etiqueta marcadores marcador",
    "opted_out": """optedout unsubscribed unsubscribedfromemails unsubscribedfromallemail abgemeldet
        vonallenemailsabgemeldet desabonne desinscrit desinscritdetouslesemails dadodebaja descadastrado""",
    FIELDS: "customfields",
}
_GUESSED = {name: target for target, names in _GUESSES.items() for name in names.split()}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its first values. `target`: the guessed target, one of TARGETS."""

    header: str
    values: Sequence[str]
    target: str


@dataclass(frozen=True, slots=True)
class Mapping:
    """The targets of a table's columns: one of TARGETS for each header."""

    headers: Sequence[str]
    targets: Sequence[str]

    def names_for(self, columns: Sequence[str]) -> list[str]:
        """Returns the name that each column is imported as; "" if it is left out.

        Raises Invalid if `columns` are not the mapped headers, if a target is unknown, if two columns other than `tags`
        get the same name, if a full name stands beside a first or last name, or if all columns are left out.
        """
        if list(columns) != list(self.headers) or len(self.headers) != len(self.targets):
            raise Invalid(Fault("", "These are not the columns of the file. Choose the file again, and check them."))
        if any(target not in TARGETS for target in self.targets):
            raise Invalid(Fault("", "There is no such choice for a column."))
        names = [_name_of(header, target) for header, target in zip(self.headers, self.targets, strict=True)]
        given = [name for name in names if name not in (NOTHING, "tags")]
        if repeated := next((name for name in given if given.count(name) > 1), None):
            raise Invalid(Fault("", f"Two columns are imported as {repeated.replace('_', ' ')[:100]}. Leave one out."))
        if NAME in given and {"first_name", "last_name"} & {*given}:
            raise Invalid(Fault("", "Import the full name, or the first and the last name, and not both."))
        if not any(names):
            raise Invalid(Fault("", "Choose what at least one column is imported as."))
        return names


def header(lines: Lines) -> tuple[list[str], str]:
    """Reads the row with the columns' names. Returns the names, and the separator.

    Skips a line such as `sep=;` before the row. Line breaks in a name become spaces. Raises Invalid if the row cannot
    be read.
    """
    head = lines.read(LONGEST_LINE_BYTES)
    named = _NAMED_DELIMITER.fullmatch(head)
    if named:
        head = lines.read(LONGEST_LINE_BYTES)
    row = _whole_row(head, lines)
    delimiter = named[1] if named else max(_DELIMITERS, key=_QUOTED.sub("", row).count)
    try:
        return [" ".join(name.split()) for name in next(csv.reader([row], delimiter=delimiter), [])], delimiter
    except csv.Error as error:
        raise Invalid(Fault("", f"The line with the names of the columns cannot be read: {error}.")) from error


def _whole_row(head: str, lines: Lines) -> str:
    """Returns the row that begins with the line `head`, with its quoted line breaks. Raises Invalid."""
    row, number = head, lines.number
    for _ in range(_MOST_LINES_OF_NAMES):
        if not _OPEN.search(_QUOTED.sub("", row)):
            return row
        row += lines.read(LONGEST_LINE_BYTES)
    raise Invalid(Fault("", f"A quotation mark in line {number} is not closed."))


def read(file: IO[bytes]) -> list[Column]:
    """Returns the columns of a table, or of its beginning. Raises Invalid for none or too many."""
    with opened(file, "replace") as text:
        lines = Lines(text)
        headers, delimiter = header(lines)
        if not any(headers) or len(headers) > MOST_COLUMNS:
            raise Invalid(Fault("", f"The first line must name the columns, at most {MOST_COLUMNS}."))
        cells = [[unguarded(cell) for cell in row[:MOST_COLUMNS]] for row in _first_rows(lines, delimiter)]
    values = [[row[place] for row in cells if len(row) > place and row[place].strip()] for place in range(len(headers))]
    targets = _guesses(headers, values)
    return [Column(*each) for each in zip(headers, (few[:SHOWN_VALUES] for few in values), targets, strict=True)]


def _guesses(headers: Sequence[str], values: Sequence[Sequence[str]]) -> list[str]:
    """Guesses the targets of the columns. A column named exactly like its target takes precedence."""
    targets = [_guess(header, few) for header, few in zip(headers, values, strict=True)]
    places = sorted(range(len(headers)), key=lambda place: headers[place] != targets[place])
    taken: set[str] = set()
    for place in places:
        if targets[place] in taken:
            targets[place] = NOTHING
        taken |= {targets[place]} - {"tags", FIELD}
    if NAME in taken and taken & {"first_name", "last_name"}:
        # Beside a column for one part of the name, "Name", "Nom" or "Nombre" means the other part.
        missing = [part for part in ("first_name", "last_name") if part not in taken]
        targets[targets.index(NAME)] = missing[0] if missing else NOTHING
    return targets


def _first_rows(lines: Lines, delimiter: str) -> list[list[str]]:
    try:
        return list(islice(csv.reader(lines, delimiter=delimiter), _LOOKED_AT))
    except csv.Error:
        return []  # the import reports what is wrong, and in which line


def _guess(name: str, values: Sequence[str]) -> str:
    if name.startswith(CUSTOM):
        return FIELD
    if name == ID and values and all(ids.is_id(value.strip(), "con") for value in values):
        return ID
    plain = unicodedata.normalize("NFKD", _REMARK.sub("", name)).lower()
    plain = "".join(character for character in plain if character.isalnum())
    return _GUESSED.get(plain.removeprefix("your").removesuffix("1value"), NOTHING)  # as in "Phone 1 - Value"


def _name_of(header: str, target: str) -> str:
    if target != FIELD:
        return target
    return header if header.startswith(CUSTOM) else CUSTOM + header
