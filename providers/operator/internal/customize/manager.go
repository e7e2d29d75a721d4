package customize

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

const (
	concurrencySuffix = "-concurrency"
	debugVerbosity    = 5
	debugProfiler     = "localhost:6060"
)

// changeManager sets options of the controller manager. spec may be nil. specific are the kinds whose concurrency is set already.
func changeManager(d *appsv1.Deployment, spec *operatorv1.ManagerSpec, specific map[string]bool, field string) error {
	if spec == nil {
		return nil
	}
	c := managerContainer(d)
	if c == nil {
		return fmt.Errorf("%s: Deployment %s has no container named manager: it has %s",
			field, d.Name, containerNames(d.Spec.Template.Spec.Containers))
	}
	args := &arguments{slices.Clone(c.Args)}
	logging(args, spec)
	if len(spec.FeatureGates) > 0 {
		gates, err := featureGates(args.get("feature-gates"), spec.FeatureGates)
		if err != nil {
			return fmt.Errorf("%s.featureGates: Deployment %s: %w", field, d.Name, err)
		}
		args.set("feature-gates", gates)
	}
	if err := general(args, spec, field); err != nil {
		return err
	}
	concurrency(args, spec, specific)
	endpoints(args, c, spec)
	if err := shutdown(d, spec.GracefulShutdownTimeout); err != nil {
		return fmt.Errorf("%s.gracefulShutDown: %w", field, err)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.AdditionalArgs)) {
		if args.has(name) {
			return fmt.Errorf("%s.additionalArgs[%s]: Deployment %s has this argument already: use deployment.containers[].args to change it",
				field, name, d.Name)
		}
		args.set(name, string(spec.AdditionalArgs[name]))
	}
	c.Args = args.list
	return nil
}

func logging(args *arguments, spec *operatorv1.ManagerSpec) {
	verbosity, profiler := spec.Verbosity, spec.ProfilerAddress
	if spec.Debug {
		address := debugProfiler
		verbosity, profiler = debugVerbosity, &address
	}
	flag := "v"
	if args.has("verbosity") {
		flag = "verbosity"
	}
	// 1 is the default of the API: the user may not have set it, and 0 stands for a field that is not set.
	if verbosity > 1 {
		args.set(flag, strconv.Itoa(verbosity))
	}
	if profiler != nil {
		args.set("profiler-address", *profiler)
	}
}

// featureGates merges gates into a list such as A=true,B=false.
func featureGates(present string, gates map[string]bool) (string, error) {
	all := map[string]string{}
	for entry := range strings.SplitSeq(present, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		gate, value, ok := strings.Cut(entry, "=")
		if !ok {
			return "", fmt.Errorf("the components have the invalid --feature-gates %q", present)
		}
		all[gate] = value
	}
	for gate, on := range gates {
		all[gate] = strconv.FormatBool(on)
	}
	var list []string
	for _, gate := range slices.Sorted(maps.Keys(all)) {
		list = append(list, gate+"="+all[gate])
	}
	return strings.Join(list, ","), nil
}

// maxShutdown is the time for managers that may take any time to stop.
const maxShutdown = 24 * time.Hour

// shutdown sets how long a manager may take to stop: a negative time stands for any.
func shutdown(d *appsv1.Deployment, timeout *operatorv1.Duration) error {
	if timeout == nil || *timeout == "" {
		return nil
	}
	value, err := timeout.Parse()
	if err != nil {
		return err
	}
	if value < 0 {
		value = maxShutdown
	}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To(int64(math.Ceil(value.Seconds())))
	return nil
}

func general(args *arguments, spec *operatorv1.ManagerSpec, field string) error {
	if spec.CacheNamespace != "" {
		args.set("namespace", spec.CacheNamespace)
	}
	if e := spec.LeaderElection; e != nil && e.LeaderElect != nil {
		args.set("leader-elect", strconv.FormatBool(*e.LeaderElect))
	}
	for _, d := range durations(spec) {
		value, err := d.value.Parse()
		if err != nil {
			return fmt.Errorf("%s.%s: %w", field, d.field, err)
		}
		if d.value != "" && (value > 0 || d.isZeroValid) {
			args.set(d.flag, value.String())
		}
	}
	return nil
}

// duration is a field with a duration, and its flag.
type duration struct {
	field, flag string
	value       operatorv1.Duration
	isZeroValid bool
}

func durations(spec *operatorv1.ManagerSpec) []duration {
	var list []duration
	if spec.SyncPeriod != nil {
		list = append(list, duration{"syncPeriod", "sync-period", *spec.SyncPeriod, true})
	}
	if e := spec.LeaderElection; e != nil {
		list = append(list, duration{"leaderElection.leaseDuration", "leader-elect-lease-duration", e.LeaseDuration, false},
			duration{"leaderElection.renewDeadline", "leader-elect-renew-deadline", e.RenewDeadline, false},
			duration{"leaderElection.retryPeriod", "leader-elect-retry-period", e.RetryPeriod, false})
	}
	return list
}

// concurrency sets the concurrency of kinds. The general number is for the flags that the components have.
func concurrency(args *arguments, spec *operatorv1.ManagerSpec, specific map[string]bool) {
	if n := spec.MaxConcurrentReconciles; n > 0 {
		for _, argument := range slices.Clone(args.list) {
			flag, _, _ := strings.Cut(key(argument), "=")
			kind, ok := strings.CutSuffix(flag, concurrencySuffix)
			if ok && strings.HasPrefix(argument, "-") && !specific[kind] {
				args.set(flag, strconv.Itoa(n))
			}
		}
	}
	if spec.Controller == nil {
		return
	}
	for _, groupKind := range slices.Sorted(maps.Keys(spec.Controller.GroupKindConcurrency)) {
		kind, _, _ := strings.Cut(groupKind, ".")
		args.set(strings.ToLower(kind)+concurrencySuffix, strconv.Itoa(spec.Controller.GroupKindConcurrency[groupKind]))
	}
}

// endpoints sets what the manager serves, and keeps ports and probes of the container in accord with it.
func endpoints(args *arguments, c *corev1.Container, spec *operatorv1.ManagerSpec) {
	if v := cmp.Or(spec.Metrics.BindAddress, spec.MetricsAddress); v != "" {
		args.set("metrics-bind-addr", v)
		setPort(c, portOf(v), "metrics")
	}
	if v := spec.Metrics.DiagnosticsAddress; v != "" {
		args.set("diagnostics-address", v)
		setPort(c, portOf(v), "metrics")
	}
	if spec.Metrics.InsecureDiagnostics {
		args.set("insecure-diagnostics", "true")
	}
	if v := spec.Health.HealthProbeBindAddress; v != "" {
		args.set("health-addr", v)
		setPort(c, portOf(v), "healthz", "health")
	}
	setPath(c.ReadinessProbe, spec.Health.ReadinessEndpointName)
	setPath(c.LivenessProbe, spec.Health.LivenessEndpointName)
	if port := spec.Webhook.Port; port != nil {
		args.set("webhook-port", strconv.Itoa(*port))
		setPort(c, *port, "webhook-server")
	}
	if v := spec.Webhook.Host; v != "" && args.has("webhook-host") { // Managers of Cluster API do not start with this flag.
		args.set("webhook-host", v)
	}
	if v := spec.Webhook.CertDir; v != "" {
		args.set("webhook-cert-dir", v)
	}
}

// portOf returns the port of an address, 0 if it has none.
func portOf(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

// setPort sets the number of a named container port, and of probes that have the previous number.
func setPort(c *corev1.Container, port int, names ...string) {
	if port <= 0 {
		return
	}
	for i := range c.Ports {
		if !slices.Contains(names, c.Ports[i].Name) {
			continue
		}
		previous := c.Ports[i].ContainerPort
		c.Ports[i].ContainerPort = int32(port)
		for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Port == intstr.FromInt32(previous) {
				probe.HTTPGet.Port = intstr.FromInt32(c.Ports[i].ContainerPort)
			}
		}
	}
}

func setPath(probe *corev1.Probe, name string) {
	if probe != nil && probe.HTTPGet != nil && name != "" {
		probe.HTTPGet.Path = "/" + strings.TrimPrefix(name, "/")
	}
}
