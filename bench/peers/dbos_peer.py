"""Five durable steps of a DBOS workflow. They make the same five updates as the plain peer."""

import os

from dbos import DBOS
from five_updates import UPDATES, carry_out, change

DBOS(
    config={
        "name": "peer",
        "system_database_url": os.environ["DATABASE_URL"],
        "sys_db_pool_size": int(os.environ["THREADS"]) + 4,
        "log_level": "WARNING",
    }
)


@DBOS.step()
def change_contact(number: int, contact_id: str) -> None:
    change(number, contact_id)


@DBOS.workflow()
def run(contact_id: str) -> None:
    for number in range(len(UPDATES)):
        change_contact(number, contact_id)


DBOS.launch()
carry_out(run)
