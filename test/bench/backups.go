package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/test/managers"
)

// backupInterval is the shortest that policies allow.
const backupInterval = time.Minute

// backupsKey is the name of the Secret with the key of archives, and of the BackupStore and the policy.
const backupsKey = "bench"

// backups creates clusters and a policy that backs up all of them every minute, and prints what a backup costs: in a directory, with
// archives that are verified as a flag says.
func (w *world) backups(ctx context.Context, out io.Writer, o options) error {
	for done := 0; done < o.backups; done += hundred {
		s := scenario{Clusters: min(hundred, o.backups-done), ControlPlanes: 1, Workers: 1}
		if _, err := w.measure(ctx, s, fmt.Sprintf("b%d-", done/hundred)); err != nil {
			return err
		}
	}
	err := w.createStore(ctx)
	if err == nil {
		err = w.Client.Create(ctx, w.fleetObject(fleetv1.EtcdBackupPolicyKind, map[string]any{
			"intervalSeconds": int64(backupInterval.Seconds()), "retention": map[string]any{"count": int64(1)}, "verification": o.verification,
			"storeRef":   map[string]any{"name": backupsKey},
			"encryption": map[string]any{"identitySecretRef": map[string]any{"name": backupsKey}},
		}))
	}
	if err != nil {
		return err
	}
	// The first minute has the connections' first backups.
	if err := pause(ctx, 2*backupInterval); err != nil {
		return err
	}
	before, err := w.costs(ctx)
	if err != nil {
		return err
	}
	duration := max(o.idle, 2*backupInterval)
	if err := pause(ctx, duration); err != nil {
		return err
	}
	after, err := w.costs(ctx)
	if err != nil {
		return err
	}
	n := after.completed - before.completed
	if n == 0 {
		return errors.New("no backup was completed")
	}
	each := func(a, b float64) float64 { return (b - a) / n }
	var r row
	r.count(before.requests, after.requests)
	fmt.Fprintf(out, "%d clusters, %.0f backups in %s, verified by %s\n", o.backups, n, duration, o.verification)
	fmt.Fprintf(out, "each: %.1f writes and %.1f reads of the management cluster, %.1f requests to the workload cluster\n",
		r.Writes/n, r.Reads/n, each(before.workload, after.workload))
	fmt.Fprintf(out, "each: fleet manager %.3f s of CPU, API server %.3f s; memory of the fleet manager: %d MiB now, %d MiB at most\n",
		each(before.fleet, after.fleet), each(before.server, after.server), memoryOf(w.fleet().Running.PID()), peakOf(w.fleet().Running.PID()))
	printDetail(out, row{scenario: scenario{Clusters: int(n)}, requests: r.requests}, max(o.detail, 15))
	return nil
}

// spent are counters since the start of the processes.
type spent struct {
	requests                           map[request]float64
	completed, workload, fleet, server float64
}

func (w *world) costs(ctx context.Context) (spent, error) {
	requests, err := w.requests(ctx)
	if err != nil {
		return spent{}, err
	}
	s := spent{requests: requests, fleet: cpuOf(w.fleet().Running.PID()), server: cpuOf(w.PID())}
	for kind, n := range requests {
		if kind.verb == "POST" && kind.resource == "etcdbackups" {
			s.completed += n // Each is made within seconds.
		}
	}
	s.workload, err = w.workloadRequests(ctx)
	return s, err
}

// workloadRequests returns how many requests the API servers of the workload clusters have answered to the fleet provider, and to others
// that change little.
func (w *world) workloadRequests(ctx context.Context) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.workloads+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, m := range families["capim_apiserver_request_total"].GetMetric() {
		total += m.GetCounter().GetValue()
	}
	return total, nil
}

// createStore creates the key and the store.
func (w *world) createStore(ctx context.Context) error {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{fleetv1.IdentityKey: key.String()},
	}}
	secret.SetNamespace("default")
	secret.SetName(backupsKey)
	return errors.Join(w.Client.Create(ctx, secret), w.Client.Create(ctx, w.fleetObject(fleetv1.BackupStoreKind, map[string]any{
		"directory": map[string]any{"path": backupsKey},
	})))
}

// fleetObject returns an object of the fleet provider.
func (*world) fleetObject(kind string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fleetv1.GroupVersion.String(), "kind": kind, "spec": spec}}
	o.SetNamespace("default")
	o.SetName(backupsKey)
	return o
}

// withBackups prepares the managers: the fleet provider has a directory for archives, and the metrics of workload clusters an address.
func (w *world) withBackups(m *managers.Manager) error {
	switch m.Component {
	case "fleet":
		m.Args = append(m.Args, "--data-dir="+filepath.Join(w.Dir, "backups"))
	case "infrastructure-in-memory":
		port, err := managers.FreePort()
		if err != nil {
			return err
		}
		w.workloads = fmt.Sprintf("127.0.0.1:%d", port)
		m.Args = append(m.Args, "--diagnostics-address="+w.workloads)
	}
	return nil
}

// fleet returns the manager of the fleet provider.
func (w *world) fleet() *managers.Manager { return w.component("fleet") }

// component returns the manager of a component.
func (w *world) component(name string) *managers.Manager {
	i := slices.IndexFunc(w.managers, func(m *managers.Manager) bool { return m.Component == name })
	return w.managers[i]
}

// peakOf is the largest resident memory that a process has had, in MiB.
func peakOf(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kibi := 0
	if _, err := fmt.Sscan(rest, &kibi); err != nil {
		return 0
	}
	return kibi / 1024
}
