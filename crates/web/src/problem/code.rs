//! Every code that an answer can carry: its status, its title, and what to do about it.

use axum::http::StatusCode;

macro_rules! codes {
    ($($variant:ident $name:literal $status:ident $title:literal $advice:literal)*) => {
        /// The stable name of a problem, which scripts may match.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The status that goes with it, unless the same call may succeed a little later.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            /// What the caller can do.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice),* }
            }
        }
    };
}

codes! {
    BadId "bad_id" BAD_REQUEST
        "The id in the path is not one"
        "Ids are UUIDs, as the answers give them."
    BadQuery "bad_query" BAD_REQUEST
        "A query parameter is wrong"
        "The detail names it. Times are RFC 3339; write + as %2B."
    BadHeader "bad_header" BAD_REQUEST
        "A request header is wrong"
        "The detail names it and says what it should be."
    MalformedJson "malformed_json" BAD_REQUEST
        "The body is not JSON"
        "Look at the line and column."
    Unauthenticated "unauthenticated" UNAUTHORIZED
        "Who calls is not known"
        "Send a key that is valid: Authorization: Bearer lavra_…, or log in at /ui/login. lavra key create makes one."
    RoleNeeded "role_needed" FORBIDDEN
        "The key's role does not include this"
        "needed is the role that does; lavra key create NAME --role ROLE makes such a key."
    Csrf "csrf" FORBIDDEN
        "The request does not carry the page's token"
        "Load the page again and repeat it. A script sends X-CSRF-Token, a program uses a key instead of the cookie."
    ForeignOrigin "foreign_origin" FORBIDDEN
        "This page may not change anything here"
        "Requests from pages of other sites are refused. If the page is yours, add its name to web.hosts in lavra.toml."
    NotAllowed "not_allowed" FORBIDDEN
        "This is only for the one who runs the server"
        "Use lavra sql on the same machine, as the same user."
    NoSuchRoute "no_such_route" NOT_FOUND
        "There is nothing at this path"
        "The paths are in /openapi.json."
    TaskNotFound "task_not_found" NOT_FOUND
        "There is no such task"
        "It never was, or it ended long ago and was cleaned up."
    ResultNotFound "result_not_found" NOT_FOUND
        "The task has no result"
        "It has not completed, or it completed without one."
    DeadLetterNotFound "dead_letter_not_found" NOT_FOUND
        "There is no such dead letter"
        "It was redriven or removed."
    ScheduleNotFound "schedule_not_found" NOT_FOUND
        "There is no such schedule"
        "GET /schedules lists them."
    SourceNotFound "source_not_found" NOT_FOUND
        "Nothing of this source was extracted here"
        "Extract it first: lavra extract run SOURCE --from MONTH --to MONTH."
    ExtractionNotFound "extraction_not_found" NOT_FOUND
        "The plan of the source has no such task"
        "GET /extractions/{source} lists them."
    KeyNotFound "key_not_found" NOT_FOUND
        "There is no such key"
        "GET /keys and lavra key list have the ids."
    FleetNotFound "fleet_not_found" NOT_FOUND
        "There is no such mission, worker, proxy or writer"
        "GET /missions and GET /fleet/workers, /fleet/proxies and /fleet/writers list them."
    FleetConflict "fleet_conflict" CONFLICT
        "As things stand, that cannot be done"
        "The detail says what stands in the way."
    WebhookNotFound "webhook_not_found" NOT_FOUND
        "There is no such webhook"
        "GET /webhooks lists them."
    WebhookConflict "webhook_conflict" CONFLICT
        "Another webhook has that name"
        "Choose another name, or change the one that has it."
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED
        "This path has no such method"
        "The header Allow names those it has."
    IllegalTransition "illegal_transition" CONFLICT
        "The state of the task does not allow that"
        "task_status says what the task is now."
    TaskLost "task_lost" CONFLICT
        "The task is no longer this worker's"
        "Stop working on it: it was cancelled, taken over or has ended. Nothing more needs to be said."
    VersionMismatch "version_mismatch" PRECONDITION_FAILED
        "The task has changed since it was read"
        "Read it again and decide again; actual is its version now."
    RequestUnderWay "request_under_way" CONFLICT
        "A request with this Idempotency-Key is under way"
        "Wait a moment and repeat it: it is answered as the first one was."
    BodyTooLarge "body_too_large" PAYLOAD_TOO_LARGE
        "The body is too large"
        "Put what is large into a file or bucket and its address into the payload; split batches."
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE
        "The body has the wrong type"
        "Send JSON with Content-Type: application/json; the forms of pages are application/x-www-form-urlencoded."
    WrongHost "wrong_host" MISDIRECTED_REQUEST
        "This server is not addressed by that name"
        "Use localhost, 127.0.0.1 or ::1, or add the name to web.hosts in lavra.toml."
    InvalidRequest "invalid_request" UNPROCESSABLE_ENTITY
        "The request cannot be carried out as it is"
        "The detail says what is wrong with which field."
    UnknownTaskType "unknown_task_type" UNPROCESSABLE_ENTITY
        "Nobody here knows that task type"
        "GET /types lists those known. A worker's first claim makes a type known, or [tasks.types] in lavra.toml."
    IdempotencyKeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY
        "The Idempotency-Key belongs to another request"
        "Use a new key for a new request; repeat a request with the same body."
    TooManyAttempts "too_many_attempts" TOO_MANY_REQUESTS
        "Too many wrong keys from there"
        "Wait for Retry-After, and use a key that is valid."
    InternalError "internal_error" INTERNAL_SERVER_ERROR
        "Something is wrong in lavra"
        "The log of the server has more. Please report it."
    DatabaseError "database_error" INTERNAL_SERVER_ERROR
        "The database refused"
        "The log of the server has more. With 503 it passes: try again."
    DatabaseHeld "database_held" INTERNAL_SERVER_ERROR
        "Another process holds the database"
        "Use that process's address, or stop it."
    DatabaseNewer "database_newer" INTERNAL_SERVER_ERROR
        "The database was written by a newer version"
        "Run that version, or use another database."
    BadConfiguration "bad_configuration" INTERNAL_SERVER_ERROR
        "The server's configuration is wrong"
        "The detail says where."
    SecretUnreadable "secret_unreadable" INTERNAL_SERVER_ERROR
        "A stored secret cannot be read"
        "The key in the server's environment is not the one it was written with."
    TooManyListeners "too_many_listeners" SERVICE_UNAVAILABLE
        "Too many pages listen to this server"
        "Close some; those that are open are refreshed all the same."
    Timeout "timeout" SERVICE_UNAVAILABLE
        "It took too long"
        "Look whether it was done, then try again; with an Idempotency-Key there is no need to look."
    DatabaseUnreachable "database_unreachable" SERVICE_UNAVAILABLE
        "The database does not answer"
        "Try again after Retry-After."
    DiskFull "disk_full" SERVICE_UNAVAILABLE
        "The disk is full"
        "Make room where the database lies; writing goes on by itself."
    ArtefactError "artefact_error" SERVICE_UNAVAILABLE
        "The place for artefacts does not answer"
        "Try again after Retry-After."
}
