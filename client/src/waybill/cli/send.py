"""The command `send`: records from a file, a pipe or the command line, and what became of them."""

from typing import Annotated

import typer

from waybill.cli.render import Form, OutputOption
from waybill.cli.sending.delivery import Delivery
from waybill.cli.sending.formats import FormatName
from waybill.cli.sending.source import HINT, STDIN, open_source
from waybill.cli.session import GenerationOption, InputArgument, PipelineArgument, connect_to_change

KEY_CHARACTERS_MAX = 240


def _check_key(key: str | None) -> str | None:
    if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
        message = f"a key has 1 to {KEY_CHARACTERS_MAX} characters: each request adds its number"
        raise typer.BadParameter(message)
    return key


SourceArgument = Annotated[
    str,
    typer.Argument(metavar=HINT, help="a file, also with .gz; - for stdin; or records, as '{...}'"),
]
WaitOption = Annotated[
    float | None,
    typer.Option(
        "--wait", min=0.0, metavar="SECONDS", help="follow until all has arrived, so long at most"
    ),
]
FormatOption = Annotated[
    FormatName | None,
    typer.Option("--format", help="of the source, where its ending does not say it"),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="makes it safe to run the same command again, for a day: nothing is written twice",
        callback=_check_key,
    ),
]
RecordKeyOption = Annotated[
    str | None,
    typer.Option("--record-key", metavar="TEXT", help="of a raw record: its key in Kafka"),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="C", help="of CSV: between fields; , or for .tsv tab"),
]
QuoteOption = Annotated[
    str | None, typer.Option("--quote", metavar="C", help='of CSV: around fields; ", or `none`')
]
EscapeOption = Annotated[
    str | None,
    typer.Option("--escape", metavar="C", help="of CSV: makes the next character ordinary"),
]
NullOption = Annotated[
    str | None,
    typer.Option("--null", metavar="TEXT", help="of CSV: the field that is null; an empty one"),
]
EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="of CSV: windows-1252, utf-16, …; utf-8"),
]
NoHeaderOption = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="of CSV: the first row is a record, its fields in the order of the columns",
    ),
]


def send(
    pipeline: PipelineArgument,
    input: InputArgument,
    source: SourceArgument = STDIN,
    wait: WaitOption = None,
    *,
    format: FormatOption = None,
    key: KeyOption = None,
    record_key: RecordKeyOption = None,
    delimiter: DelimiterOption = None,
    quote: QuoteOption = None,
    escape: EscapeOption = None,
    null: NullOption = None,
    encoding: EncodingOption = None,
    no_header: NoHeaderOption = False,
    generation: GenerationOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Send records to an input of a pipeline and print their token.

    The ending of a file says its format: .ndjson, .jsonl, .json, .csv, .tsv, .avro, and .bin, which
    is one record, byte for byte. Each may have .gz after it. A source without an ending is NDJSON,
    one JSON object a line, or a JSON array; --format says what else it is.

    A large source goes in several requests, cut between records. There is one token for all of
    them, printed at the end. Rows that are rejected are named with their line, in Avro and JSON
    with their number; the others are kept. With --wait, the token is followed until it is final.

    When a connection breaks, a request is sent again by itself; it is never written twice. When a
    request fails, it says up to where all was sent, and the token is for that. With --key you can
    run the whole command again, with the same source.

    \b
    Example:
      waybill send orders orders '{"order_id": 1, "amount": 12.5}' --wait 30
      waybill send orders orders rows.csv.gz --delimiter ';' --null NULL
      zcat rows.gz | waybill send orders orders - --format csv --wait 120 -o json

    \b
    Exit codes: 0 all accepted, with --wait: complete · 1 error, or a row was rejected · 2 usage ·
      3 dead-lettered or lost · 4 still in progress when the time was over · 5 unknown
    """
    options = {"delimiter": delimiter, "quote": quote, "escape": escape, "null": null}
    options |= {"encoding": encoding, "header": "absent" if no_header else None, "key": record_key}
    with open_source(source, format, options) as opened, connect_to_change() as client:
        delivery = Delivery(
            pipeline=pipeline,
            input=input,
            output=output,
            source=opened,
            generation=generation,
            key=key,
        )
        delivery.carry_out(client, wait)
    raise typer.Exit(delivery.exit_code())
