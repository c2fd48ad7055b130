"""Five updates in five transactions, with psycopg2 and nothing else."""

from five_updates import UPDATES, carry_out, change


def run(contact_id: str) -> None:
    for number in range(len(UPDATES)):
        change(number, contact_id)


carry_out(run)
