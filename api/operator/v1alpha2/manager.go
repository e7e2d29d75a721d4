package v1alpha2

import "time"

// ManagerSpec sets options of a controller manager, as arguments of its container.
//
// +kubebuilder:validation:XValidation:message="Cannot set both 'metricsAddress' and 'metrics.bindAddress'",rule="!(has(self.metricsAddress) && has(self.metrics) && has(self.metrics.bindAddress))"
type ManagerSpec struct {
	ControllerManagerConfiguration `json:",inline"`

	// metricsAddress is the same as metrics.bindAddress.
	// +optional
	MetricsAddress string `json:"metricsAddress,omitempty"`

	// profilerAddress is the address of the pprof profiler, such as localhost:6060 (--profiler-address). The default is none.
	// +optional
	ProfilerAddress *string `json:"profilerAddress,omitempty"`

	// maxConcurrentReconciles is the number of concurrent reconciles of every kind (--<kind>-concurrency).
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentReconciles int `json:"maxConcurrentReconciles,omitempty"`

	// verbosity of the logs (--v). The default, 1, leaves the verbosity of the components; a lower one can be set with an argument.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Verbosity int `json:"verbosity,omitempty"`

	// debug sets verbosity to 5 and profilerAddress to localhost:6060. While it is true, other fields of manager cannot be
	// changed.
	// +optional
	Debug bool `json:"debug,omitempty"`

	// featureGates are the provider's feature gates (--feature-gates). They are merged with those of the components.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// additionalArgs are further arguments, by name, which the container must not have yet.
	// +optional
	AdditionalArgs map[string]Argument `json:"additionalArgs,omitempty"`
}

// ControllerManagerConfiguration is the part of ManagerSpec that controller managers have in common.
type ControllerManagerConfiguration struct {
	// syncPeriod is the interval at which all objects are reconciled (--sync-period), such as 11m or, in seconds, 660.
	// +optional
	SyncPeriod *Duration `json:"syncPeriod,omitempty"`

	// leaderElection configures leader election (--leader-elect and others).
	// +optional
	LeaderElection *LeaderElectionConfiguration `json:"leaderElection,omitempty"`

	// cacheNamespace restricts the manager to a namespace (--namespace). The default is all.
	// +optional
	CacheNamespace string `json:"cacheNamespace,omitempty"`

	// gracefulShutDown is how long the manager may take to stop before it is killed (terminationGracePeriodSeconds of its Pods); a
	// negative time is a day.
	// +optional
	GracefulShutdownTimeout *Duration `json:"gracefulShutDown,omitempty"`

	// controller configures all controllers.
	// +optional
	Controller *ControllerConfigurationSpec `json:"controller,omitempty"`

	// metrics configures metrics.
	// +optional
	Metrics ControllerMetrics `json:"metrics,omitempty"`

	// health configures health checks.
	// +optional
	Health ControllerHealth `json:"health,omitempty"`

	// webhook configures the webhook server.
	// +optional
	Webhook ControllerWebhook `json:"webhook,omitempty"`
}

// LeaderElectionConfiguration configures leader election.
type LeaderElectionConfiguration struct {
	// leaderElect enables leader election (--leader-elect).
	LeaderElect *bool `json:"leaderElect"`

	// leaseDuration is how long other processes wait until they take over (--leader-elect-lease-duration).
	LeaseDuration Duration `json:"leaseDuration"`

	// renewDeadline is how long the leader tries to renew before it stops (--leader-elect-renew-deadline).
	RenewDeadline Duration `json:"renewDeadline"`

	// retryPeriod is the interval of attempts (--leader-elect-retry-period).
	RetryPeriod Duration `json:"retryPeriod"`

	// resourceLock is the kind of the lock. Managers of Cluster API always use leases.
	ResourceLock string `json:"resourceLock"`

	// resourceName is the name of the lock. Managers of Cluster API have no flag for it.
	ResourceName string `json:"resourceName"`

	// resourceNamespace is the namespace of the lock. Managers of Cluster API have no flag for it.
	ResourceNamespace string `json:"resourceNamespace"`
}

// ControllerConfigurationSpec configures all controllers of a manager.
type ControllerConfigurationSpec struct {
	// groupKindConcurrency is the number of concurrent reconciles, by kind and group, such as Cluster.cluster.x-k8s.io
	// (--<kind>-concurrency).
	// +optional
	GroupKindConcurrency map[string]int `json:"groupKindConcurrency,omitempty"`

	// cacheSyncTimeout is how long the manager waits for its caches. Managers of Cluster API have no flag for it.
	// +optional
	CacheSyncTimeout *time.Duration `json:"cacheSyncTimeout,omitempty"`

	// recoverPanic recovers panics. Managers of Cluster API always do.
	// +optional
	RecoverPanic *bool `json:"recoverPanic,omitempty"`
}

// ControllerMetrics configures metrics.
type ControllerMetrics struct {
	// bindAddress is the address of metrics without authentication (--metrics-bind-addr); "0" is none.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// diagnosticsAddress is the address of metrics and diagnostics (--diagnostics-address); "0" is none.
	// +optional
	DiagnosticsAddress string `json:"diagnosticsAddress,omitempty"`

	// insecureDiagnostics serves metrics without authentication, and no diagnostics (--insecure-diagnostics).
	// +optional
	InsecureDiagnostics bool `json:"insecureDiagnostics,omitempty"`
}

// ControllerHealth configures health checks.
type ControllerHealth struct {
	// healthProbeBindAddress is the address of health checks (--health-addr).
	// +optional
	HealthProbeBindAddress string `json:"healthProbeBindAddress,omitempty"`

	// readinessEndpointName is the path of the readiness probe. The default is readyz.
	// +optional
	ReadinessEndpointName string `json:"readinessEndpointName,omitempty"`

	// livenessEndpointName is the path of the liveness probe. The default is healthz.
	// +optional
	LivenessEndpointName string `json:"livenessEndpointName,omitempty"`
}

// ControllerWebhook configures the webhook server.
type ControllerWebhook struct {
	// port of the webhook server (--webhook-port).
	// +optional
	Port *int `json:"port,omitempty"`

	// host is the address that the webhook server listens on (--webhook-host), if the components have this argument. Managers of
	// Cluster API have no flag for it, and listen on all addresses.
	// +optional
	Host string `json:"host,omitempty"`

	// certDir has the certificate and the key of the webhook server (--webhook-cert-dir).
	// +optional
	CertDir string `json:"certDir,omitempty"`
}
