package manager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"sigs.k8s.io/cluster-api/sdk/version"
)

// helpWidth is the line width of --help.
const helpWidth = 120

// ownFlags is the group of the component's own flags.
const ownFlags = "manager"

// parse parses arguments into new options and into the component's own variables. Errors include the flag.
func parse(c Component, args []string) (*options, *cliflag.NamedFlagSets, error) {
	o := &options{logging: logsapi.NewLoggingConfiguration()}
	groups := o.groups(c)
	all := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	all.SetOutput(io.Discard) // Of deprecated flags. They are logged instead, in the format of the log.
	all.Usage = func() {}
	for _, name := range groups.Order {
		all.AddFlagSet(groups.FlagSets[name])
	}
	o.given = all.Changed
	defer func() { o.deprecated = deprecated(all) }()
	if err := all.Parse(args); errors.Is(err, pflag.ErrHelp) {
		o.help = true
	} else if err != nil {
		return nil, nil, fmt.Errorf("%w (see --help)", err)
	}
	if o.help || o.version {
		return o, groups, nil
	}
	if rest := all.Args(); len(rest) > 0 {
		return nil, nil, fmt.Errorf("unexpected argument %q: there are only flags (see --help)", rest[0])
	}
	return o, groups, o.validate(c)
}

// deprecated returns what users should do about the deprecated flags that they have set, by flag.
func deprecated(fs *pflag.FlagSet) map[string]string {
	found := map[string]string{}
	fs.Visit(func(f *pflag.Flag) {
		if f.Deprecated != "" {
			found["--"+f.Name] = f.Deprecated
		}
	})
	return found
}

// groups returns all flags in the order of --help.
func (o *options) groups(c Component) *cliflag.NamedFlagSets {
	groups := &cliflag.NamedFlagSets{}
	if c.AddFlags != nil {
		c.AddFlags(groups.FlagSet(ownFlags))
	}
	o.addWatchFlags(groups.FlagSet("watch"))
	c.FeatureGates.AddFlag(groups.FlagSet("feature gate"))
	o.addConnectionFlags(groups.FlagSet("API server connection"))
	o.addLeaderElectionFlags(groups.FlagSet("leader election"), c.LeaderElection)
	o.addWebhookFlags(groups.FlagSet("webhook server"))
	o.addDiagnosticsFlags(groups.FlagSet("health and diagnostics"))
	logsapi.AddFlags(o.logging, groups.FlagSet("logging"))
	fs := groups.FlagSet("other")
	fs.BoolVarP(&o.help, "help", "h", false, "Show this help and exit.")
	fs.BoolVar(&o.version, "version", false, "Show the version and exit.")
	return groups
}

func (o *options) addWatchFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.watchNamespace, "namespace", "",
		"The only namespace to watch for cluster-api objects. If unspecified, all namespaces are watched.")
	fs.StringVar(&o.watchFilter, "watch-filter", "",
		"Label value of the objects to reconcile; the label key is always cluster.x-k8s.io/watch-filter. "+
			"If unspecified, all objects are reconciled.")
	o.skipMigration.AddTo(fs)
	fs.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute,
		"Minimum interval at which all watched objects are reconciled without an event (e.g. 15m).")
}

func (o *options) addConnectionFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Kubeconfig file for running outside of the management cluster. If unspecified, the pod's service account is used.")
	fs.Float32Var(&o.qps, "kube-api-qps", 100, "Requests per second to the API server, on average. Negative: no limit.")
	fs.IntVar(&o.burst, "kube-api-burst", 200, "Maximum number of requests to the API server in a burst.")
}

func (o *options) addLeaderElectionFlags(fs *pflag.FlagSet, defaults LeaderElectionDurations) {
	fs.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that only one of several replicas reconciles.")
	fs.DurationVar(&o.leaderElection.Lease, "leader-elect-lease-duration", defaults.Lease,
		"How long other replicas wait before they take over from a leader that stopped renewing its lease.")
	fs.DurationVar(&o.leaderElection.RenewDeadline, "leader-elect-renew-deadline", defaults.RenewDeadline,
		"How long the leader tries to renew its lease before it gives up.")
	fs.DurationVar(&o.leaderElection.RetryPeriod, "leader-elect-retry-period", defaults.RetryPeriod,
		"How long replicas wait between attempts to acquire or renew the lease.")
}

func (o *options) addWebhookFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the webhook server.")
	fs.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/",
		"Directory with the webhook server's certificate and its key. If it contains neither, the manager issues "+
			"and renews the certificate itself.")
	fs.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt", "File with the certificate in --webhook-cert-dir.")
	fs.StringVar(&o.webhookKeyName, "webhook-key-name", "tls.key", "File with the key of the certificate in --webhook-cert-dir.")
	fs.StringVar(&o.tlsMinVersion, "tls-min-version", "VersionTLS12",
		"Lowest TLS version of the webhook server. Possible values: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+".")
	fs.StringSliceVar(&o.tlsCipherSuites, "tls-cipher-suites", nil,
		"Comma-separated list of the webhook server's cipher suites up to TLS 1.2. If unspecified, Go's defaults are used.\n"+
			"Preferred values: "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+".\n"+
			"Insecure values: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", ")+".")
}

func (o *options) addDiagnosticsFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of the health endpoints /healthz and /readyz.")
	fs.StringVar(&o.diagnosticsAddress, "diagnostics-address", ":8443",
		"Address of the diagnostics endpoint: metrics, profiles and log level, with authentication and authorization.")
	fs.BoolVar(&o.insecureDiagnostics, "insecure-diagnostics", false,
		"Serve only metrics at --diagnostics-address, without encryption and authentication.")
	fs.StringVar(&o.metricsAddress, "metrics-bind-addr", "",
		"Address to serve only metrics at, without encryption and authentication. If set, the diagnostics flags are ignored.")
	// It only fails for flags that do not exist.
	_ = fs.MarkDeprecated("metrics-bind-addr", "use --diagnostics-address, with --insecure-diagnostics to keep plain metrics")
	fs.StringVar(&o.profilerAddress, "profiler-address", "",
		"Address to serve profiles at, without encryption and authentication, e.g. localhost:6060. If unspecified, they are not served.")
	fs.BoolVar(&o.contentionProfiling, "contention-profiling", false, "Record where goroutines block, for profiles.")
}

func printHelp(w io.Writer, c Component, groups *cliflag.NamedFlagSets) {
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s [flags]\n\nExamples:\n", c.Purpose, c.Name)
	fmt.Fprintf(w, "  # Run in a Pod, as one of several replicas\n  %s --leader-elect\n\n", c.Name)
	fmt.Fprintf(w, "  # Run on a developer's machine, for the current cluster of kubectl\n"+
		"  %s --kubeconfig ~/.kube/config --diagnostics-address 127.0.0.1:8443 -v 4\n", c.Name)
	sections := &bytes.Buffer{}
	cliflag.PrintSections(sections, *groups, helpWidth)
	for line := range strings.Lines(sections.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n")) // Flags are padded to the width.
	}
}

func printVersion(w io.Writer, c Component) {
	fmt.Fprintln(w, version.Get().Sentence(c.Name))
}
