//! The doors over HTTP: where they listen, in the clear and over TLS, and what their TLS needs beside them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parallax_dial::{Guard, Policy};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{AppError, outgoing};
use crate::admin::health::Ours;
use crate::clock::Clock;
use crate::config::Config;
use crate::http::server::{self, Places, Way};
use crate::http::{self, Context};
use crate::service::Service;
use crate::service::hosts::name_of;
use crate::supervise::Rooms;
use crate::tls::acme::{self, Keeper, Names, Told, Tools};
use crate::tls::files::{Files, Marks};
use crate::tls::{Challenges, Shown};

/// Name of the folder of certificates.
const FOLDER: &str = "tls";
/// Pause before a keeper of certificates that could not be started anew is tried again.
const ANEW: Duration = Duration::from_secs(60);

/// Listeners that nobody is served at yet.
pub(super) struct Doors {
    plain: TcpListener,
    /// Where HTTP is served in the clear.
    pub(super) http_addr: SocketAddr,
    /// Where HTTP is served over TLS, where it is.
    pub(super) tls_addr: Option<SocketAddr>,
    secure: Option<Secure>,
}

struct Secure {
    listener: TcpListener,
    shown: Shown,
    config: Arc<ServerConfig>,
    challenges: Challenges,
    redirect: bool,
    /// The operator's own, with their marks from before they were read.
    files: Option<(Files, Marks)>,
    acme: Option<(acme::Settings, Guard)>,
    certificates: Certificates,
}

/// How the certificates of this process stand, for whoever tells the operator.
#[derive(Debug, Clone, Default)]
pub(super) struct Certificates {
    pub(super) shown: Shown,
    pub(super) told: Told,
}

impl Doors {
    /// Listens, and reads what TLS needs.
    ///
    /// # Errors
    /// [`AppError`] where an address can't be listened on, or the certificate is of no use.
    pub(super) async fn open(config: &Config) -> Result<Self, AppError> {
        let plain = bind("HTTP", config.http.listen).await?;
        let http_addr = plain.local_addr().map_err(|source| listen("HTTP", config.http.listen, source))?;
        let secure = match config.tls.listen {
            Some(address) => Some(Secure::open(config, address).await?),
            None => None,
        };
        let tls_addr = secure.as_ref().and_then(|secure| secure.listener.local_addr().ok());
        Ok(Self { plain, http_addr, tls_addr, secure })
    }

    /// How its certificates stand.
    pub(super) fn certificates(&self) -> Certificates {
        self.secure.as_ref().map(|secure| secure.certificates.clone()).unwrap_or_default()
    }

    /// How people reach it where nobody has set that.
    pub(super) fn base_url(&self) -> String {
        match self.tls_addr {
            Some(address) => format!("https://{address}"),
            None => format!("http://{}", self.http_addr),
        }
    }

    /// Serves at all of them until told to stop, and has their certificates kept among these rooms.
    ///
    /// # Errors
    /// [`AppError::Tls`] where certificates can't be kept.
    pub(super) async fn serve(
        self,
        context: &Arc<Context>,
        clock: &Clock,
        stop: &watch::Receiver<bool>,
        rooms: &mut Rooms,
    ) -> Result<Vec<JoinHandle<()>>, AppError> {
        rooms.keep("http-log", http::report_omitted_lines);
        let places = Places::of_this_process();
        let door = |listener, way| {
            let (context, stop) = (Arc::clone(context), told(stop.clone()));
            tokio::spawn(server::serve(listener, way, places.clone(), context, stop))
        };
        let Some(secure) = self.secure else { return Ok(vec![door(self.plain, Way::Plain)]) };
        let led = Way::Led { challenges: secure.challenges.clone(), redirect: secure.redirect };
        let doors =
            vec![door(self.plain, led), door(secure.listener, Way::Tls(secure.shown.clone(), secure.config))];
        if let Some((files, marks)) = secure.files {
            let shown = secure.shown.clone();
            let mut marks = Some(marks);
            // Begun anew, it knows no marks, and reads the files again.
            rooms.keep("certificate-files", move || {
                files.clone().keep(shown.clone(), marks.take().unwrap_or_default())
            });
        }
        if let Some((settings, guard)) = secure.acme {
            let told = secure.certificates.told;
            let service = context.service();
            let of = told.clone();
            service.told_of_certificates_by(move |host| of.problem(host));
            let (shown, challenges) = (secure.shown, secure.challenges);
            let (names, clock) = (names(service), clock.clone());
            let tools = Tools { settings, names, clock, shown, challenges, guard, told };
            let started = Keeper::start(tools.clone()).await;
            let mut first = Some(started.map_err(|error| AppError::Tls(error.to_string()))?);
            rooms.keep("certificates", move || keep(first.take(), tools.clone()));
        }
        Ok(doors)
    }
}

impl Secure {
    async fn open(config: &Config, address: SocketAddr) -> Result<Self, AppError> {
        let base = config.http.base_url.as_deref().and_then(name_of);
        let shown = Shown::new(base);
        let files = config.tls.certificate.clone().zip(config.tls.key.clone());
        let files = files.map(|(certificate, key)| Files { certificate, key });
        let files = files.map(|files| (files.clone(), files.marks()));
        if let Some((files, _)) = &files {
            let pair = files.read().map_err(|error| AppError::Tls(error.to_string()))?;
            shown.put_own(pair);
        }
        Ok(Self {
            listener: bind("TLS", address).await?,
            config: shown.server_config().map_err(|error| AppError::Tls(error.to_string()))?,
            certificates: Certificates { shown: shown.clone(), told: Told::default() },
            shown,
            challenges: Challenges::default(),
            redirect: config.tls.redirect,
            files,
            acme: config.acme.enabled.then(|| acme(config)).transpose()?,
        })
    }
}

/// A listener for HTTP.
///
/// # Errors
/// [`AppError::Listen`].
pub(super) async fn bind(what: &'static str, address: SocketAddr) -> Result<TcpListener, AppError> {
    server::listener(address).await.map_err(|source| listen(what, address, source))
}

/// That an address can't be listened on.
pub(super) fn listen(what: &'static str, address: SocketAddr, source: io::Error) -> AppError {
    AppError::Listen { what, address, source }
}

/// Whether a name is ours, for a proxy that asks.
pub(super) fn ours(service: &Service) -> Ours {
    let service = service.clone();
    Arc::new(move |name| {
        service.is_ours(name).inspect_err(|error| tracing::warn!(%error, "our names can't be read")).ok()
    })
}

/// What certificates are ordered by, and the way to where their names lead.
fn acme(config: &Config) -> Result<(acme::Settings, Guard), AppError> {
    let settings = acme::Settings {
        folder: config.data.join(FOLDER),
        directory: config.acme.directory.clone(),
        contact: config.acme.contact.clone(),
        roots: config.acme.roots.clone(),
    };
    // Names are customers' choice: they are looked at where deliveries may go, and where they should lead, which is here.
    let policy =
        Policy { allow_private: config.deliver.allow_private, allow_own_host: true, ..Policy::default() };
    Ok((settings, Guard::new(outgoing::resolver(config)?, policy)))
}

/// Keeps certificates: by the keeper that was started, else by one of its own.
async fn keep(started: Option<Keeper>, tools: Tools) {
    let keeper = match started {
        Some(keeper) => keeper,
        None => Keeper::start_anew(tools, ANEW).await,
    };
    keeper.run().await;
}

/// The names that certificates are ordered for.
fn names(service: &Service) -> Names {
    let (base, changes) = (service.base_name(), service.edits());
    let service = service.clone();
    let list = move || {
        let service = service.clone();
        async move {
            let names = service.names().await;
            names.inspect_err(|error| tracing::warn!(%error, "our names can't be read")).ok()
        }
        .boxed()
    };
    Names { list: Arc::new(list), changes, base }
}

async fn told(mut stop: watch::Receiver<bool>) {
    // Who would tell is gone: that too is a reason to stop.
    let _ = stop.wait_for(|stop| *stop).await;
}
