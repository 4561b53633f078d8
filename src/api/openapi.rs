//! The OpenAPI 3.1 document: the shapes come from the code, the words for each route from the table
//! here. A test compares that table with the routes.

use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{Ref, Schema};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApiBuilder,
    PathItem, PathsBuilder, RefOr, Required, ResponseBuilder, Type,
};

use crate::api::{ROUTES, Route};
use crate::wire::cluster::{Cluster, TransferRequest, Version};
use crate::wire::fire::{Fire, FireRequest};
use crate::wire::job::{Job, JobSpec};
use crate::wire::page::Page;
use crate::wire::problem::Problem;
use crate::wire::tenant::{Group, Tenant, TenantSpec};
use crate::wire::trigger::{Preview, PreviewRequest, Trigger, TriggerSpec};
use crate::wire::worker::{
    AcquireRequest, AcquireResponse, AnswerRequest, AnswerResponse, ExtendRequest, ExtendResponse,
    Registered, Worker, WorkerSpec,
};

type Schemas = Vec<(String, RefOr<Schema>)>;
/// Adds a shape and all it is made of, and refers to it.
type Shape = fn(&mut Schemas) -> RefOr<Schema>;

/// The words for a route.
struct Words {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    body: Body,
    /// What a call that went well is answered with.
    answer: Content,
}

enum Body {
    None,
    Optional(Shape),
    Required(Shape),
}

enum Content {
    /// The status, and the shape of the body.
    Json(&'static str, Shape),
    Text(&'static str),
    Nothing,
}

fn shape<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    let name = T::name().into_owned();
    schemas.push((name.clone(), T::schema()));
    T::schemas(schemas);
    RefOr::Ref(Ref::from_schema_name(name))
}

const WORDS: &[Words] = &[
    Words {
        method: "GET",
        path: "/livez",
        summary: "Is this member alive?",
        body: Body::None,
        answer: Content::Text("text/plain"),
    },
    Words {
        method: "GET",
        path: "/readyz",
        summary: "May callers be sent to this member?",
        body: Body::None,
        answer: Content::Text("text/plain"),
    },
    Words {
        method: "GET",
        path: "/metrics",
        summary: "Metrics in the OpenMetrics format",
        body: Body::None,
        answer: Content::Text("application/openmetrics-text"),
    },
    Words {
        method: "GET",
        path: "/v1/version",
        summary: "The version of this member",
        body: Body::None,
        answer: Content::Json("200", shape::<Version>),
    },
    Words {
        method: "GET",
        path: "/v1/openapi.json",
        summary: "This document",
        body: Body::None,
        answer: Content::Text("application/json"),
    },
    Words {
        method: "GET",
        path: "/v1/cluster",
        summary: "The cluster as this member sees it",
        body: Body::None,
        answer: Content::Json("200", shape::<Cluster>),
    },
    Words {
        method: "POST",
        path: "/v1/cluster:transfer-leadership",
        summary: "Hand leadership over",
        body: Body::Optional(shape::<TransferRequest>),
        answer: Content::Nothing,
    },
    Words {
        method: "DELETE",
        path: "/v1/cluster/members/{member}",
        summary: "Remove a member for good",
        body: Body::None,
        answer: Content::Nothing,
    },
    Words {
        method: "POST",
        path: "/v1/schedules:preview",
        summary: "The coming times of a schedule that is not stored",
        body: Body::Required(shape::<PreviewRequest>),
        answer: Content::Json("200", shape::<Preview>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants",
        summary: "List the tenants",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Tenant>>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}",
        summary: "Read a tenant",
        body: Body::None,
        answer: Content::Json("200", shape::<Tenant>),
    },
    Words {
        method: "PUT",
        path: "/v1/tenants/{tenant}",
        summary: "Create or replace a tenant",
        body: Body::Optional(shape::<TenantSpec>),
        answer: Content::Json("200", shape::<Tenant>),
    },
    Words {
        method: "DELETE",
        path: "/v1/tenants/{tenant}",
        summary: "Delete a tenant without jobs",
        body: Body::None,
        answer: Content::Nothing,
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/groups",
        summary: "List the groups",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Group>>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/groups/{group}:pause",
        summary: "Pause the triggers of all jobs of a group",
        body: Body::None,
        answer: Content::Json("200", shape::<Group>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/groups/{group}:resume",
        summary: "Resume a group",
        body: Body::None,
        answer: Content::Json("200", shape::<Group>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/jobs",
        summary: "List the jobs",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Job>>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}",
        summary: "Read a job",
        body: Body::None,
        answer: Content::Json("200", shape::<Job>),
    },
    Words {
        method: "PUT",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}",
        summary: "Create or replace a job, with its triggers if they are given",
        body: Body::Required(shape::<JobSpec>),
        answer: Content::Json("200", shape::<Job>),
    },
    Words {
        method: "DELETE",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}",
        summary: "Delete a job; its open fires end as cancelled",
        body: Body::None,
        answer: Content::Nothing,
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}:pause",
        summary: "Pause the triggers of a job",
        body: Body::None,
        answer: Content::Json("200", shape::<Job>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}:resume",
        summary: "Resume a job",
        body: Body::None,
        answer: Content::Json("200", shape::<Job>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}:fire",
        summary: "Ask for a fire, now or later",
        body: Body::Optional(shape::<FireRequest>),
        answer: Content::Json("201", shape::<Fire>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers",
        summary: "List the triggers of a job",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Trigger>>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}",
        summary: "Read a trigger",
        body: Body::None,
        answer: Content::Json("200", shape::<Trigger>),
    },
    Words {
        method: "PUT",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}",
        summary: "Create or replace a trigger",
        body: Body::Required(shape::<TriggerSpec>),
        answer: Content::Json("200", shape::<Trigger>),
    },
    Words {
        method: "DELETE",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}",
        summary: "Delete a trigger",
        body: Body::None,
        answer: Content::Nothing,
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:pause",
        summary: "Pause a trigger",
        body: Body::None,
        answer: Content::Json("200", shape::<Trigger>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:resume",
        summary: "Resume a trigger",
        body: Body::None,
        answer: Content::Json("200", shape::<Trigger>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/jobs/{group}/{job}/triggers/{trigger}:preview",
        summary: "The coming times of a trigger",
        body: Body::None,
        answer: Content::Json("200", shape::<Preview>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/fires",
        summary: "List open and ended fires, newest first",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Fire>>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/fires:watch",
        summary: "Watch fires as they change",
        body: Body::None,
        answer: Content::Text("text/event-stream"),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/fires/{fire}",
        summary: "Read a fire with its attempts and what they left behind",
        body: Body::None,
        answer: Content::Json("200", shape::<Fire>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/fires/{fire}:cancel",
        summary: "Cancel a fire that waits, or ask the worker of one that runs",
        body: Body::None,
        answer: Content::Json("200", shape::<Fire>),
    },
    Words {
        method: "GET",
        path: "/v1/tenants/{tenant}/workers",
        summary: "List the workers",
        body: Body::None,
        answer: Content::Json("200", shape::<Page<Worker>>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/workers",
        summary: "Register a worker",
        body: Body::Required(shape::<WorkerSpec>),
        answer: Content::Json("201", shape::<Registered>),
    },
    Words {
        method: "DELETE",
        path: "/v1/tenants/{tenant}/workers/{worker}",
        summary: "Remove a worker; what it still holds keeps its lease",
        body: Body::None,
        answer: Content::Nothing,
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/workers/{worker}:drain",
        summary: "Give a worker no more work",
        body: Body::None,
        answer: Content::Json("200", shape::<Worker>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/workers/{worker}:acquire",
        summary: "Take work, and wait for it",
        body: Body::Required(shape::<AcquireRequest>),
        answer: Content::Json("200", shape::<AcquireResponse>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/workers/{worker}:extend",
        summary: "Prolong the leases of attempts that still run",
        body: Body::Required(shape::<ExtendRequest>),
        answer: Content::Json("200", shape::<ExtendResponse>),
    },
    Words {
        method: "POST",
        path: "/v1/tenants/{tenant}/workers/{worker}:answer",
        summary: "Say how attempts ended",
        body: Body::Required(shape::<AnswerRequest>),
        answer: Content::Json("200", shape::<AnswerResponse>),
    },
];

/// The document, as JSON.
#[must_use]
pub fn document() -> String {
    let mut schemas = Schemas::new();
    let problem = shape::<Problem>(&mut schemas);
    let mut paths = PathsBuilder::new();
    for words in WORDS {
        let Some(route) = ROUTES.iter().find(|route| route.is(words)) else { continue };
        let operation = operation(route, words, &problem, &mut schemas);
        paths = paths.path(route.path, PathItem::new(http_method(route.method), operation));
    }
    let info = InfoBuilder::new()
        .title("Horolog")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A replicated job scheduler that needs nothing beside itself"));
    let components = ComponentsBuilder::new().schemas_from_iter(schemas);
    let document = OpenApiBuilder::new()
        .info(info.build())
        .paths(paths.build())
        .components(Some(components.build()))
        .build();
    document.to_json().unwrap_or_default()
}

impl Route {
    fn is(&self, words: &Words) -> bool {
        self.method == words.method && self.path == words.path
    }
}

fn http_method(method: &str) -> HttpMethod {
    match method {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(
    route: &Route,
    words: &Words,
    problem: &RefOr<Schema>,
    schemas: &mut Schemas,
) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .summary(Some(words.summary))
        .operation_id(Some(operation_id(route)));
    for name in path_parts(route.path) {
        operation = operation.parameter(parameter(name, ParameterIn::Path));
    }
    for name in route.parameters {
        operation = operation.parameter(parameter(name, ParameterIn::Query));
    }
    let (body, required) = match words.body {
        Body::None => (None, Required::False),
        Body::Optional(shape) => (Some(shape(schemas)), Required::False),
        Body::Required(shape) => (Some(shape(schemas)), Required::True),
    };
    if let Some(body) = body {
        let body = RequestBodyBuilder::new()
            .required(Some(required))
            .content("application/json", ContentBuilder::new().schema(Some(body)).build());
        operation = operation.request_body(Some(body.build()));
    }
    let went_well = ResponseBuilder::new().description("It went well");
    let (status, answer) = match &words.answer {
        Content::Nothing => ("204", went_well),
        Content::Text(media) => {
            let text = ObjectBuilder::new().schema_type(Type::String).build();
            let content = ContentBuilder::new().schema(Some(text)).build();
            ("200", went_well.content(*media, content))
        }
        Content::Json(status, shape) => {
            let content = ContentBuilder::new().schema(Some(shape(schemas))).build();
            (*status, went_well.content("application/json", content))
        }
    };
    let refused = ContentBuilder::new().schema(Some(problem.clone())).build();
    let refused = ResponseBuilder::new()
        .description("It was refused; the code says why")
        .content("application/problem+json", refused);
    operation.response(status, answer.build()).response("default", refused.build())
}

fn parameter(name: &str, place: ParameterIn) -> ParameterBuilder {
    let required = match place {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    ParameterBuilder::new().name(name).parameter_in(place).required(required).schema(Some(text))
}

/// The named parts of a path.
fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

/// A name made of the method and the fixed words of the path.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.to_lowercase();
    let parts = route.path.trim_start_matches("/v1").split(['/', ':', '.']);
    for part in parts.filter(|part| !part.is_empty()) {
        id.push('_');
        id.push_str(part.trim_matches(['{', '}']));
    }
    id.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_its_words_and_every_word_its_route() {
        for route in ROUTES {
            let found = WORDS.iter().filter(|words| route.is(words)).count();
            assert_eq!(found, 1, "{} {}", route.method, route.path);
        }
        assert_eq!(WORDS.len(), ROUTES.len());
    }

    #[test]
    fn the_document_holds_every_route_and_every_shape_it_refers_to() {
        let text = document();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
        for route in ROUTES {
            let method = route.method.to_lowercase();
            let operation = &document["paths"][route.path][&method];
            assert!(operation["summary"].is_string(), "{} {}", route.method, route.path);
        }
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let mut ids: Vec<String> = ROUTES.iter().map(operation_id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), ROUTES.len());
    }
}
