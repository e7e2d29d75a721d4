package manager

import (
	"net"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"sigs.k8s.io/cluster-api/sdk/manager/internal/migrator"
)

// options are the values of the flags of all managers.
type options struct {
	kubeconfig string
	qps        float32
	burst      int

	watchNamespace string
	watchFilter    string
	syncPeriod     time.Duration
	skipMigration  migrator.Phases

	leaderElect    bool
	leaderElection LeaderElectionDurations

	webhookPort     int
	webhookCertDir  string
	webhookCertName string
	webhookKeyName  string
	tlsMinVersion   string
	tlsCipherSuites []string

	healthAddress       string
	diagnosticsAddress  string
	insecureDiagnostics bool
	metricsAddress      string
	profilerAddress     string
	contentionProfiling bool

	logging *logsapi.LoggingConfiguration

	help    bool
	version bool
	// deprecated are the flags that were set although they are deprecated, with what to do.
	deprecated map[string]string
	// given reports whether a flag was set explicitly.
	given func(flag string) bool
}

// off reports whether an address disables its endpoint.
func off(address string) bool {
	return address == "" || address == "0"
}

func address(a string) string {
	if off(a) {
		return ""
	}
	_, _, err := net.SplitHostPort(a)
	return message(err)
}
