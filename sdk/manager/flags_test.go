package manager

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"sigs.k8s.io/cluster-api/sdk/feature"
)

// testComponent has its own flag.
func testComponent() Component {
	concurrency := 0
	return Component{
		Name:         "test-controller",
		Purpose:      "A manager for tests",
		Namespace:    "test-system",
		FeatureGates: feature.New(feature.ClusterTopology),
		AddFlags: func(fs *pflag.FlagSet) {
			fs.IntVar(&concurrency, "machine-concurrency", 10, "Number of Machines to process simultaneously.")
		},
		Validate: func() error {
			if concurrency < 1 {
				return errors.New("invalid --machine-concurrency: at least one Machine must be processed")
			}
			return nil
		},
	}.withDefaults()
}

// documented returns the documented defaults, with the changes of a test.
func documented(change func(*options)) *options {
	o := &options{
		qps: 100, burst: 200,
		syncPeriod:         10 * time.Minute,
		leaderElection:     LeaderElectionDurations{Lease: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
		webhookPort:        9443,
		webhookCertDir:     "/tmp/k8s-webhook-server/serving-certs/",
		webhookCertName:    "tls.crt",
		webhookKeyName:     "tls.key",
		tlsMinVersion:      "VersionTLS12",
		healthAddress:      ":9440",
		diagnosticsAddress: ":8443",
	}
	if change != nil {
		change(o)
	}
	return o
}

func TestParse(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason    string
		component func(*Component)
		args      []string
		want      *options
	}{
		"none": {
			reason: "every flag has its documented default",
			want:   documented(nil),
		},
		"a release's Deployment": {
			reason: "the arguments of the documented manifests work",
			args: []string{
				"--leader-elect", "--diagnostics-address=:8443", "--insecure-diagnostics=false",
				"--feature-gates=MachinePool=true,ClusterResourceSet=true,ClusterTopology=true,RuntimeSDK=false,MachineSetPreflightChecks=false",
			},
			want: documented(func(o *options) { o.leaderElect = true }),
		},
		"slower leader election": {
			reason: "a component has its own defaults for leader election",
			component: func(c *Component) {
				c.LeaderElection = LeaderElectionDurations{Lease: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second}
			},
			want: documented(func(o *options) {
				o.leaderElection = LeaderElectionDurations{Lease: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second}
			}),
		},
		"everything": {
			reason: "every flag reaches its option",
			args: []string{
				"--kubeconfig=" + kubeconfig, "--kube-api-qps=-1", "--kube-api-burst=0",
				"--namespace=team-a", "--watch-filter=blue", "--sync-period=1h",
				"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=5s",
				"--webhook-port=0", "--webhook-cert-dir=/certs", "--webhook-cert-name=c", "--webhook-key-name=k", "--tls-min-version=VersionTLS13",
				"--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
				"--health-addr=0", "--diagnostics-address=localhost:8080", "--insecure-diagnostics",
				"--profiler-address=localhost:6060", "--contention-profiling", "-v=4", "--logging-format=json", "--log-flush-frequency=1s",
			},
			want: documented(func(o *options) {
				*o = options{
					kubeconfig: kubeconfig, qps: -1, burst: 0,
					watchNamespace: "team-a", watchFilter: "blue", syncPeriod: time.Hour,
					leaderElection: LeaderElectionDurations{Lease: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 5 * time.Second},
					webhookPort:    0, webhookCertDir: "/certs", webhookCertName: "c", webhookKeyName: "k", tlsMinVersion: "VersionTLS13",
					tlsCipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
					healthAddress:   "0", diagnosticsAddress: "localhost:8080", insecureDiagnostics: true,
					profilerAddress: "localhost:6060", contentionProfiling: true,
				}
			}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := testComponent()
			if tt.component != nil {
				tt.component(&c)
			}
			got, _, err := parse(c, tt.args)
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			ignored := cmpopts.IgnoreFields(options{}, "logging", "given")
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(options{}), ignored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestParseLogging(t *testing.T) {
	got, _, err := parse(testComponent(), []string{"--v=5", "--logging-format=json", "--log-flush-frequency=1s"})
	if err != nil {
		t.Fatal(err)
	}
	want := logsapi.NewLoggingConfiguration()
	want.Verbosity, want.Format, want.FlushFrequency.Duration.Duration = 5, "json", time.Second
	if diff := cmp.Diff(want, got.logging, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("logging flags (-want +got):\n%s", diff)
	}
}

func TestParseRejects(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"unknown flag":         {"a misspelled flag is named", []string{"--leader-elekt"}, "unknown flag: --leader-elekt (see --help)"},
		"argument":             {"an unexpected argument is in the error", []string{"serve"}, `unexpected argument "serve": there are only flags (see --help)`},
		"not a duration":       {"the flag and the value are named", []string{"--sync-period=often"}, `invalid argument "often" for "--sync-period" flag: time: invalid duration "often" (see --help)`},
		"sync period":          {"a period is positive", []string{"--sync-period=0s"}, "invalid --sync-period: 0s must be positive"},
		"namespace":            {"an invalid namespace cannot be watched", []string{"--namespace=Team_A"}, "invalid --namespace: "},
		"watch filter":         {"no object could have this label", []string{"--watch-filter=a b"}, "invalid --watch-filter: "},
		"kubeconfig":           {"a missing file is named", []string{"--kubeconfig=/no/such/file"}, "invalid --kubeconfig: file /no/such/file does not exist"},
		"burst":                {"without a burst nothing could be sent", []string{"--kube-api-burst=0"}, "invalid --kube-api-burst: 0 must be positive"},
		"port":                 {"a port is a port", []string{"--webhook-port=70000"}, "invalid --webhook-port: 70000 is not a port"},
		"TLS version":          {"the version is named", []string{"--tls-min-version=VersionTLS14"}, `invalid --tls-min-version: unknown tls version "VersionTLS14"`},
		"cipher suite":         {"the suite is named", []string{"--tls-cipher-suites=ROT13"}, "invalid --tls-cipher-suites: Cipher suite ROT13 not supported"},
		"address":              {"an address has a port", []string{"--health-addr=localhost"}, "invalid --health-addr: address localhost: missing port"},
		"diagnostics address":  {"an address has a port", []string{"--diagnostics-address=8443"}, "invalid --diagnostics-address: "},
		"renew deadline":       {"leaders must give up before others take over", []string{"--leader-elect-renew-deadline=15s"}, "invalid --leader-elect-renew-deadline: 15s must be shorter than --leader-elect-lease-duration (15s)"},
		"retry period":         {"leaders must try more than once", []string{"--leader-elect-retry-period=9s"}, "invalid --leader-elect-retry-period: "},
		"log format":           {"logging is checked, too", []string{"--logging-format=xml"}, "invalid logging flags: "},
		"the component's flag": {"a component checks its own flags", []string{"--machine-concurrency=0"}, "invalid --machine-concurrency: at least one Machine must be processed"},
		"feature gate":         {"the gate is named", []string{"--feature-gates=ClusterTopologie=true"}, "unrecognized feature gate: ClusterTopologie"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(testComponent(), tt.args)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got error %v, want one with %q", tt.reason, err, tt.want)
			}
		})
	}
}

// Deprecated flags work, and the log says what to do about those that are set.
func TestDeprecatedFlags(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		args    []string
		address string
		logged  []string
	}{
		{"none is set", []string{"--feature-gates=PriorityQueue=true"}, "", nil},
		{
			"a flag with an alternative", []string{"--metrics-bind-addr=localhost:8080"}, "localhost:8080",
			[]string{`"Deprecated flag" "flag"="--metrics-bind-addr" "advice"="use --diagnostics-address, with --insecure-diagnostics to keep plain metrics"`},
		},
		{
			"a flag of the component", []string{"--old=3"}, "", []string{`"Deprecated flag" "flag"="--old" "advice"="remove it"`},
		},
		{
			"a gate that cannot be turned off", []string{"--feature-gates=PriorityQueue=false"}, "",
			[]string{`"Feature gate without effect" "gate"="PriorityQueue" "advice"="remove it from --feature-gates: the feature cannot be turned off"`},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := testComponent()
			add := c.AddFlags
			c.AddFlags = func(fs *pflag.FlagSet) {
				add(fs)
				fs.Int("old", 1, "")
				_ = fs.MarkDeprecated("old", "remove it")
			}
			o, _, err := parse(c, tc.args)
			if err != nil || o.metricsAddress != tc.address {
				t.Fatalf("got options %+v, error %v", o, err)
			}
			var logged []string
			r := &run{component: c, options: o, log: funcr.New(func(_, args string) {
				logged = append(logged, strings.TrimPrefix(args, `"level"=0 "msg"=`))
			}, funcr.Options{})}
			r.warn()
			if diff := cmp.Diff(tc.logged, logged); diff != "" {
				t.Errorf("log, -want +got:\n%s", diff)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"help": {
			reason: "help is grouped, the component's own flags first",
			args:   []string{"--help", "--sync-period=1h"},
			want: []string{
				"A manager for tests\n\nUsage:\n  test-controller [flags]\n", "\nExamples:\n  # ", "\nManager flags:\n", "--machine-concurrency int\n",
				"ClusterTopology=true|false (ALPHA - default=false)", "\nLeader election flags:\n", "\nWebhook server flags:\n", "--tls-min-version", "\nLogging flags:\n", "--vmodule",
			},
		},
		"short help": {reason: "-h is the same", args: []string{"-h"}, want: []string{"Usage:\n"}},
		"version": {
			reason: "the version is one line",
			args:   []string{"--version"},
			want:   []string{"test-controller v", "linux/"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stdout := &bytes.Buffer{}
			if err := Run(t.Context(), testComponent(), tt.args, Host{Stdout: stdout}); err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			rest := stdout.String()
			for _, want := range tt.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s: %q is missing, or not where it should be, in\n%s", tt.reason, want, stdout)
				}
				rest = after
			}
		})
	}
}
