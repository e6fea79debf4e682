//! The program `runslice-mcp`: a client of the Model Context Protocol asks the questions of `ask`,
//! and gets the documents that the command line writes with `--format json`.
//!
//! Requests come through standard input, and answers go to standard output. A client may read what
//! its user may read; nothing is written but below the folder of `--write`.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod cut;
mod desk;
mod options;
mod resources;
mod server;
mod tools;
mod wait;

use std::process::ExitCode;

use clap::Parser as _;
use rmcp::ServiceExt as _;

use crate::options::ServerOptions;
use crate::server::Server;

/// The program: serves one client until standard input ends.
#[must_use]
pub fn program() -> ExitCode {
    let options = match ServerOptions::try_parse() {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            runslice::door::say("runslice-mcp", &runslice::in_words(&error));
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &ServerOptions) -> anyhow::Result<()> {
    let server = Server::new(options.owner()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let service = server.serve(rmcp::transport::stdio()).await?;
        service.waiting().await?;
        anyhow::Ok(())
    });
    // A question whose client has gone does not keep the program.
    runtime.shutdown_background();
    served
}
