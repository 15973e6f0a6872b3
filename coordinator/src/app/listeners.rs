//! Listeners: HTTP, plain and over TLS with the certificate tasks that it needs, and those of the operator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parallax_dial::{DialGuard, DialPolicy};
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::TaskGroup;
use parallax_service::Services;
use parallax_service::hosts::{CertificateProblems, HostService, url_hostname};
use parallax_store::Store;
use parallax_web::http::server::{self, ConnectionSlots, ListenerMode};
use parallax_web::http::{self, HttpContext};
use parallax_web::tls::acme::{self, AcmeContext, AcmeManager, AcmeStatus, CertificateHosts};
use parallax_web::tls::certificate_files::{CertificateFiles, FileStamps};
use parallax_web::tls::{AcmeChallenges, CertificateResolver};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::metrics::MetricSources;
use super::notifications::Notifications;
use super::pipeline::Pipeline;
use super::{AppError, StartContext, settings};
use crate::admin;
use crate::admin::admin_http::{self, AdminSources, HostCheck};
use crate::config::CoordinatorConfig;

/// Name of the folder of certificates.
const FOLDER: &str = "tls";
/// Pause before a certificate manager that could not be restarted is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// Listeners that are bound but not yet served.
pub(super) struct BoundListeners {
    plain: TcpListener,
    /// Address of the plain HTTP listener.
    pub(super) http_addr: SocketAddr,
    /// Address of the HTTPS listener, if there is one.
    pub(super) tls_addr: Option<SocketAddr>,
    tls_listener: Option<TlsListener>,
}

struct TlsListener {
    listener: TcpListener,
    resolver: CertificateResolver,
    config: Arc<ServerConfig>,
    challenges: AcmeChallenges,
    redirect: bool,
    /// The operator's certificate files, with their modification marks from before they were read.
    files: Option<(CertificateFiles, FileStamps)>,
    acme: Option<(acme::AcmeSettings, DialGuard)>,
    certificates: CertificateState,
}

/// State of this process's certificates, for operator alerts.
#[derive(Debug, Clone, Default)]
pub(super) struct CertificateState {
    pub(super) resolver: CertificateResolver,
    pub(super) problems: AcmeStatus,
}

/// Parts that the listeners serve.
pub(super) struct ListenerSources<'a> {
    pub(super) http: Arc<HttpContext>,
    pub(super) store: &'a Store,
    pub(super) service: &'a Arc<Services>,
    pub(super) pipeline: &'a Pipeline,
    pub(super) notifications: &'a Notifications,
}

/// The running listeners.
pub(super) struct RunningListeners {
    /// Address of the health listener, if there is one.
    pub(super) admin_addr: Option<SocketAddr>,
    pub(super) tasks: Vec<JoinHandle<()>>,
    pub(super) stop: watch::Sender<bool>,
    /// Set once everything runs, for `/readyz`.
    pub(super) ready: watch::Sender<bool>,
}

/// Serves the bound listeners, the admin socket and the health listener; their helpers start in that group.
pub(super) async fn start(
    context: &StartContext,
    bound: BoundListeners,
    sources: ListenerSources<'_>,
    group: &mut TaskGroup,
) -> Result<RunningListeners, AppError> {
    let config = &context.config;
    let (stop, stopping) = watch::channel(false);
    let mut tasks = bound.serve(&sources.http, &context.clock, &stopping, group).await?;
    let listener = admin::socket::bind(&config.data).map_err(AppError::Admin)?;
    let operator = admin::OperatorCommands::new(sources.service.clone(), sources.pipeline.members.clone());
    tasks.push(tokio::spawn(admin::socket::serve(listener, operator, stopping.clone())));
    let (ready, is_ready) = watch::channel(false);
    let mut admin_addr = None;
    if let Some(address) = config.admin.listen {
        let listener = bind("the admin address", address).await?;
        admin_addr = listener.local_addr().ok();
        let answers = admin_sources(context, sources);
        tasks.push(tokio::spawn(admin_http::serve(listener, is_ready, answers, stopping)));
    }
    Ok(RunningListeners { admin_addr, tasks, stop, ready })
}

/// Sources of the health listener's answers.
fn admin_sources(context: &StartContext, sources: ListenerSources<'_>) -> AdminSources {
    let ListenerSources { http, store, service, pipeline, notifications } = sources;
    let metrics = MetricSources {
        driver: Arc::clone(&pipeline.counters),
        http,
        mesh: Arc::clone(pipeline.mesh.counters()),
        agents: Box::new(pipeline.mesh.viewer()),
        deliveries: notifications.deliverer.counters(),
        alerts: Arc::clone(&notifications.consumers.alerts),
        store: store.clone(),
        supervisor: context.supervisor.clone(),
    };
    let store_for_fault = store.clone();
    AdminSources {
        metrics: metrics.writer(),
        is_own_host: hostname_check(&service.hosts),
        write_fault: Arc::new(move || store_for_fault.write_fault().map(|fault| fault.to_string())),
    }
}

impl BoundListeners {
    /// Binds the listeners and reads what TLS needs.
    ///
    /// # Errors
    /// [`AppError`] if an address can't be bound or the certificate is unusable.
    pub(super) async fn open(config: &CoordinatorConfig) -> Result<Self, AppError> {
        let plain = bind("HTTP", config.http.listen).await?;
        let http_addr = plain.local_addr().map_err(|source| AppError::listen("HTTP", config.http.listen, source))?;
        let tls_listener = match config.tls.listen {
            Some(address) => Some(TlsListener::open(config, address).await?),
            None => None,
        };
        let tls_addr = tls_listener.as_ref().and_then(|tls_listener| tls_listener.listener.local_addr().ok());
        Ok(Self { plain, http_addr, tls_addr, tls_listener })
    }

    /// Returns the state of the certificates.
    pub(super) fn certificates(&self) -> CertificateState {
        self.tls_listener.as_ref().map(|tls_listener| tls_listener.certificates.clone()).unwrap_or_default()
    }

    /// Returns the source of certificate problems, which is empty if no certificates are ordered here.
    pub(super) fn certificate_problems(&self) -> CertificateProblems {
        let with_acme = self.tls_listener.as_ref().filter(|tls_listener| tls_listener.acme.is_some());
        let problems = with_acme.map(|tls_listener| tls_listener.certificates.problems.clone());
        problems.map_or_else(CertificateProblems::default, |status| {
            CertificateProblems::new(move |host| status.problem(host))
        })
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
    async fn serve(
        self,
        context: &Arc<HttpContext>,
        clock: &Clock,
        stop: &watch::Receiver<bool>,
        group: &mut TaskGroup,
    ) -> Result<Vec<JoinHandle<()>>, AppError> {
        group.spawn_restarting("http-log", http::report_omitted_lines);
        let slots = ConnectionSlots::for_process();
        let spawn = |listener, mode| {
            let (context, stop) = (Arc::clone(context), stopped(stop.clone()));
            tokio::spawn(server::serve(listener, mode, slots.clone(), context, Box::pin(stop)))
        };
        let Some(tls_listener) = self.tls_listener else { return Ok(vec![spawn(self.plain, ListenerMode::Plain)]) };
        let plain =
            ListenerMode::PlainWithTls { challenges: tls_listener.challenges.clone(), redirect: tls_listener.redirect };
        let tasks = vec![
            spawn(self.plain, plain),
            spawn(tls_listener.listener, ListenerMode::Tls(tls_listener.resolver.clone(), tls_listener.config)),
        ];
        if let Some((files, marks)) = tls_listener.files {
            let resolver = tls_listener.resolver.clone();
            let mut marks = Some(marks);
            // After a restart there are no marks, so the files are read again.
            group.spawn_restarting("certificate-files", move || {
                files.clone().watch(resolver.clone(), marks.take().unwrap_or_default())
            });
        }
        if let Some((settings, guard)) = tls_listener.acme {
            let acme = AcmeContext {
                settings,
                hosts: certificate_names(context.service()),
                clock: clock.clone(),
                resolver: tls_listener.resolver,
                challenges: tls_listener.challenges,
                guard,
                status: tls_listener.certificates.problems,
            };
            let started = AcmeManager::start(acme.clone()).await;
            let mut first = Some(started.map_err(|error| AppError::Tls(error.to_string()))?);
            group.spawn_restarting("certificates", move || run_acme_manager(first.take(), acme.clone()));
        }
        Ok(tasks)
    }
}

impl TlsListener {
    async fn open(config: &CoordinatorConfig, address: SocketAddr) -> Result<Self, AppError> {
        let base = config.http.base_url.as_deref().and_then(url_hostname);
        let resolver = CertificateResolver::new(base);
        let files = config.tls.certificate.clone().zip(config.tls.key.clone());
        let files = files.map(|(certificate, key)| CertificateFiles { certificate, key });
        let files = files.map(|files| (files.clone(), files.stamps()));
        if let Some((files, _)) = &files {
            let certified_key = files.read().map_err(|error| AppError::Tls(error.to_string()))?;
            resolver.set_operator(certified_key);
        }
        Ok(Self {
            listener: bind("TLS", address).await?,
            config: resolver.server_config().map_err(|error| AppError::Tls(error.to_string()))?,
            certificates: CertificateState { resolver: resolver.clone(), problems: AcmeStatus::default() },
            resolver,
            challenges: AcmeChallenges::default(),
            redirect: config.tls.redirect,
            files,
            acme: config.acme.enabled.then(|| acme_settings(config)).transpose()?,
        })
    }
}

/// Binds a TCP listener for HTTP.
///
/// # Errors
/// [`AppError::Listen`].
async fn bind(listener: &'static str, address: SocketAddr) -> Result<TcpListener, AppError> {
    server::listener(address).await.map_err(|source| AppError::listen(listener, address, source))
}

/// Returns the check whether a hostname is served here, for a proxy that asks (`/ask`).
fn hostname_check(hosts: &Arc<HostService>) -> HostCheck {
    let hosts = Arc::clone(hosts);
    Arc::new(move |name| {
        hosts.is_served(name).inspect_err(|error| tracing::warn!(%error, "hostnames can't be read")).ok()
    })
}

/// Settings for ordering certificates, and the guard for probes of their hostnames.
fn acme_settings(config: &CoordinatorConfig) -> Result<(acme::AcmeSettings, DialGuard), AppError> {
    let settings = acme::AcmeSettings {
        folder: config.data.join(FOLDER),
        directory: config.acme.directory.clone(),
        contact: config.acme.contact.clone(),
        roots: config.acme.roots.clone(),
    };
    // Customers choose the names: probes may go where deliveries may, and to this host, where the names should
    // resolve to.
    let policy =
        DialPolicy { allow_private: config.deliver.allow_private, allow_own_host: true, ..DialPolicy::default() };
    Ok((settings, DialGuard::new(settings::resolver(config)?, policy)))
}

/// Runs the certificate manager that was already started, or starts another one.
async fn run_acme_manager(started: Option<AcmeManager>, context: AcmeContext) {
    let manager = match started {
        Some(manager) => manager,
        None => AcmeManager::restart(context, RETRY).await,
    };
    manager.run().await;
}

/// The hostnames to order certificates for.
fn certificate_names(service: &Services) -> CertificateHosts {
    let (base, changes) = (service.hosts.base_name(), service.watch_edits());
    let hosts = Arc::clone(&service.hosts);
    let list = move || {
        let hosts = Arc::clone(&hosts);
        async move {
            let names = hosts.served_names().await;
            names.inspect_err(|error| tracing::warn!(%error, "hostnames can't be read")).ok()
        }
        .boxed()
    };
    CertificateHosts { list: Arc::new(list), changes, base_host: base }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // A dropped sender is a stop signal too.
    let _ = stop.wait_for(|stop| *stop).await;
}
