"""`agency-router`: the command line. Heavy imports sit in the commands, so that `--help` is fast."""

from __future__ import annotations

import typer

from router.cli import (
    cards,
    evaluate,
    failures,
    feedback,
    keys,
    models,
    promote,
    replay,
    retrain,
    reviews,
    route,
    serve,
    store,
    subjects,
    trace,
    train,
)
from router.cli.settings import known_environment

app = typer.Typer(
    name="agency-router",
    help="Which agent should get this request, may it, can it take it now, and what does it cost?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    callback=known_environment,
)
app.command("serve")(serve.serve)
app.command("route")(route.route)
app.add_typer(cards.app, name="cards")
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.add_typer(reviews.app, name="reviews")
app.add_typer(feedback.app, name="feedback")
app.add_typer(subjects.app, name="subjects")
app.command("trace")(trace.trace)
app.command("replay")(replay.replay)
app.command("failures")(failures.failures)
app.command("train")(train.train)
app.command("retrain")(retrain.retrain)
app.command("promote")(promote.promote)
app.command("rollback")(promote.rollback)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(store.app, name="store")
app.command("backup")(store.backup)
app.command("restore")(store.restore)

if __name__ == "__main__":
    app()
