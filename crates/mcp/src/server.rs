//! The protocol: which tools and resources there are, and who answers.

use std::sync::Arc;

use rmcp::handler::server::common::schema_for_output;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, JsonObject, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::answer::{NoAnswer, Reply, refusal};
use crate::arguments::{self, Arguments};
use crate::desk::{Desk, Shelf};
use crate::options::Owner;
use crate::resources::{self, Document};
use crate::tools::{self, FilesPart, ToolOf};
use crate::wait::{Work, wait};

/// Questions that are answered at a time; the others wait for their turn.
const TURNS: usize = 4;

const INSTRUCTIONS: &str = "\
runslice simulates Linux CPU schedulers (sched_ext policies) without a kernel, with the same \
events every time. Begin with `list`; `runslice://docs/evaluate.md` says how candidates are \
scored. A policy is a built-in name, a BPF object or a C source (`.bpf.c`), with knobs behind a \
colon: `mlfq:queues=4`. Files that are on no disk stand in `files`, by name. `evaluate` scores a \
policy that you wrote and says what to change; `explain` names the line that made a task wait; \
`hunt` searches for a run in which it fails. Where a message names an option such as `--cpus`, \
it is the argument `cpus`. Times are in nanoseconds unless a name says otherwise.";

/// A server for one client.
#[derive(Clone, Debug)]
pub struct Server {
    owner: Arc<Owner>,
    turns: Arc<Semaphore>,
}

impl Server {
    /// Nobody has asked yet.
    pub fn new(owner: Owner) -> Self {
        Self {
            owner: Arc::new(owner),
            turns: Arc::new(Semaphore::new(TURNS)),
        }
    }
}

/// A tool as clients see it.
fn described(tool: &ToolOf) -> Tool {
    let mut seen = Tool::new(tool.name, tool.about, Arc::new(tool.schema()));
    seen.output_schema = Some(schema_for_output::<Reply>());
    let hints = ToolAnnotations::new()
        .read_only(!tool.writes)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    seen.annotations = Some(hints);
    seen
}

fn listed(document: &Document) -> Resource {
    let about = document.about.clone();
    Resource::new(document.uri.clone(), document.name.clone())
        .with_description(about)
        .with_mime_type(document.mime)
        .with_size(document.text.len() as u64)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        let capabilities = capabilities.enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("runslice-mcp", show::VERSION))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = tools::ALL.iter().map(described).collect();
        Ok(ListToolsResult::with_all_items(all))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            let (name, names) = (&request.name, tools::names().collect::<Vec<_>>().join(", "));
            let message = format!("there is no tool `{name}`; there are: {names}");
            return Err(ErrorData::invalid_params(message, None));
        };
        let given = request.arguments.unwrap_or_default();
        let result = match work_of(tool, given) {
            Ok(work) => {
                let gone = context.ct.cancelled();
                wait(&self.owner, &self.turns, gone, work).await
            }
            Err(error) => Err(NoAnswer::Error(error)),
        };
        let result = match result {
            Ok(answered) => answered.reply(&self.owner),
            Err(failure) => refusal(&failure, &self.owner),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = resources::all().iter().map(listed).collect();
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let Some(document) = resources::find(&uri) else {
            let message = format!("there is no resource {uri}; `resources/list` has all");
            return Err(ErrorData::resource_not_found(
                message,
                Some(json!({ "uri": uri })),
            ));
        };
        let contents = ResourceContents::text(document.text, uri).with_mime_type(document.mime);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// What a call asks for, with the files that it brings.
fn work_of(tool: &'static ToolOf, given: JsonObject) -> anyhow::Result<(Shelf, Work)> {
    let mut arguments = Arguments::new(given, &tool.schema())?;
    let files: FilesPart = arguments.take()?;
    let work = move |desk: &Desk<'_>| (tool.ask)(&mut arguments, desk);
    Ok((Shelf::new(files.files), Box::new(work)))
}

impl ToolOf {
    fn schema(&self) -> JsonObject {
        arguments::schema(self.parts)
    }
}
