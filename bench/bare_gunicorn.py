"""gunicorn's configuration of `web` for another application: the same server, without the hooks of ours."""

from app import gunicorn

HOOKS = {"on_starting", "post_worker_init", "worker_exit"}

globals().update({name: value for name, value in vars(gunicorn).items() if name[0] != "_" and name not in HOOKS})
