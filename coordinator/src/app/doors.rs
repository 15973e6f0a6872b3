//! HTTP listeners: their addresses, plain and over TLS, and the certificate tasks that TLS needs.

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
/// Pause before a certificate manager that could not be restarted is tried again.
const ANEW: Duration = Duration::from_secs(60);

/// Listeners that are bound but not yet served.
pub(super) struct Doors {
    plain: TcpListener,
    /// Address of the plain HTTP listener.
    pub(super) http_addr: SocketAddr,
    /// Address of the HTTPS listener, if there is one.
    pub(super) tls_addr: Option<SocketAddr>,
    secure: Option<Secure>,
}

struct Secure {
    listener: TcpListener,
    shown: Shown,
    config: Arc<ServerConfig>,
    challenges: Challenges,
    redirect: bool,
    /// The operator's certificate files, with their modification marks from before they were read.
    files: Option<(Files, Marks)>,
    acme: Option<(acme::Settings, Guard)>,
    certificates: Certificates,
}

/// State of this process's certificates, for operator alerts.
#[derive(Debug, Clone, Default)]
pub(super) struct Certificates {
    pub(super) shown: Shown,
    pub(super) told: Told,
}

impl Doors {
    /// Binds the listeners and reads what TLS needs.
    ///
    /// # Errors
    /// [`AppError`] if an address can't be bound or the certificate is unusable.
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

    /// Returns the state of the certificates.
    pub(super) fn certificates(&self) -> Certificates {
        self.secure.as_ref().map(|secure| secure.certificates.clone()).unwrap_or_default()
    }

    /// The base URL if none is configured.
    pub(super) fn base_url(&self) -> String {
        match self.tls_addr {
            Some(address) => format!("https://{address}"),
            None => format!("http://{}", self.http_addr),
        }
    }

    /// Serves all listeners until the stop signal, and starts the certificate tasks in this group.
    ///
    /// # Errors
    /// [`AppError::Tls`] if the certificate manager can't start.
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
            // After a restart there are no marks, so the files are read again.
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

/// Binds a TCP listener for HTTP.
///
/// # Errors
/// [`AppError::Listen`].
pub(super) async fn bind(what: &'static str, address: SocketAddr) -> Result<TcpListener, AppError> {
    server::listener(address).await.map_err(|source| listen(what, address, source))
}

/// The error for an address that can't be bound.
pub(super) fn listen(what: &'static str, address: SocketAddr, source: io::Error) -> AppError {
    AppError::Listen { what, address, source }
}

/// Returns the check whether a hostname is served here, for a proxy that asks (`/ask`).
pub(super) fn ours(service: &Service) -> Ours {
    let service = service.clone();
    Arc::new(move |name| {
        service.is_ours(name).inspect_err(|error| tracing::warn!(%error, "hostnames can't be read")).ok()
    })
}

/// Settings for ordering certificates, and the guard for probes of their hostnames.
fn acme(config: &Config) -> Result<(acme::Settings, Guard), AppError> {
    let settings = acme::Settings {
        folder: config.data.join(FOLDER),
        directory: config.acme.directory.clone(),
        contact: config.acme.contact.clone(),
        roots: config.acme.roots.clone(),
    };
    // Customers choose the names: probes may go where deliveries may, and to this host, where the names should
    // resolve to.
    let policy =
        Policy { allow_private: config.deliver.allow_private, allow_own_host: true, ..Policy::default() };
    Ok((settings, Guard::new(outgoing::resolver(config)?, policy)))
}

/// Runs the certificate manager that was already started, or starts another one.
async fn keep(started: Option<Keeper>, tools: Tools) {
    let keeper = match started {
        Some(keeper) => keeper,
        None => Keeper::start_anew(tools, ANEW).await,
    };
    keeper.run().await;
}

/// The hostnames to order certificates for.
fn names(service: &Service) -> Names {
    let (base, changes) = (service.base_name(), service.edits());
    let service = service.clone();
    let list = move || {
        let service = service.clone();
        async move {
            let names = service.names().await;
            names.inspect_err(|error| tracing::warn!(%error, "hostnames can't be read")).ok()
        }
        .boxed()
    };
    Names { list: Arc::new(list), changes, base }
}

async fn told(mut stop: watch::Receiver<bool>) {
    // A dropped sender is a stop signal too.
    let _ = stop.wait_for(|stop| *stop).await;
}
