"""The answers of status to clients of Feldera, in the words of Feldera. Pure.

Members with a default are what Waybill has nothing to say about; Feldera's clients read them.
"""

from dataclasses import dataclass, field
from typing import Final

EDITION: Final = "Open source"
API_VERSION: Final = "0.369.0"
"""The version of Feldera that these answers are made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaConfig:
    edition: str = EDITION
    version: str = API_VERSION
    telemetry: str = ""
    revision: str = ""
    runtime_revision: str = ""
    changelog_url: str = ""
    license_validity: None = None
    update_info: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaHealth:
    all_healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentError:
    message: str
    error_code: str
    details: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaStatus:
    id: str
    name: str
    description: str = ""
    version: int
    program_version: int
    program_status: str = "Success"
    storage_status: str = "Cleared"
    deployment_status: str
    deployment_desired_status: str
    deployment_error: DeploymentError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaColumn:
    name: str
    case_sensitive: bool = True
    columntype: ColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    name: str
    case_sensitive: bool = False
    materialized: bool = False
    fields: list[FelderaColumn]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSchema:
    inputs: list[Relation]
    outputs: list[Relation]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramInfo:
    schema: ProgramSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaPipeline(FelderaStatus):
    program_code: str
    program_config: dict[str, str] = field(default_factory=dict)
    runtime_config: dict[str, str] = field(default_factory=dict)
    udf_rust: str = ""
    udf_toml: str = ""
    program_info: ProgramInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalMetrics:
    state: str
    incarnation_uuid: str
    start_time: int
    transaction_status: str = "NoTransaction"
    pipeline_complete: bool
    total_input_records: int
    buffered_input_records: int
    total_processed_records: int
    total_completed_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointMetrics:
    total_records: int
    buffered_records: int = 0
    total_bytes: int = 0
    num_transport_errors: int = 0
    num_parse_errors: int = 0
    end_of_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    endpoint_name: str
    config: EndpointConfig
    metrics: EndpointMetrics
    paused: bool = False
    barrier: bool = False
    fatal_error: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaStats:
    global_metrics: GlobalMetrics
    suspend_error: None = None
    inputs: list[Endpoint]
    outputs: list[Endpoint] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FelderaCompletion:
    status: str = field(metadata={"description": "complete | inprogress"})
    step: int | None
