package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

const (
	poll      = 50 * time.Millisecond
	aftermath = 5 * time.Second
	// heldMost is how long controllers hold back writes that only people read, while many objects change: see step.Settle. held is the same
	// while few do.
	heldMost = time.Minute
	held     = 10 * time.Second
	timeout  = 5 * time.Minute
	// ticksPerSecond is the kernel's unit of CPU time in /proc.
	ticksPerSecond = 100
)

// request is a kind of API request.
type request struct{ verb, resource, code string }

// row is the cost of one scenario.
type row struct {
	scenario
	Writes, Reads          float64
	ManagersCPU, ServerCPU float64
	Seconds                float64
	ManagersMemory         int
	requests               map[request]float64
}

// measure creates the clusters of a scenario and waits until all their Machines run.
func (w *world) measure(ctx context.Context, s scenario, prefix string) (row, error) {
	m, err := w.meter(ctx)
	if err != nil {
		return row{}, err
	}
	start := time.Now()
	for i := range s.Clusters {
		if err := w.create(ctx, clusterOf(s, prefix+strconv.Itoa(i))); err != nil {
			return row{}, err
		}
		if s.OneAtATime {
			if err := w.awaitRunning(ctx, prefix, (i+1)*(s.ControlPlanes+s.Workers)); err != nil {
				return row{}, err
			}
		}
	}
	if err := w.awaitRunning(ctx, prefix, s.Clusters*(s.ControlPlanes+s.Workers)); err != nil {
		return row{}, err
	}
	seconds := time.Since(start).Seconds()
	if s.OneAtATime {
		seconds /= float64(s.Clusters)
	}
	return m.row(ctx, s, seconds)
}

// remove deletes the clusters of a scenario at once and waits until they are gone, with all their Machines.
func (w *world) remove(ctx context.Context, s scenario, prefix string) (row, error) {
	m, err := w.meter(ctx)
	if err != nil {
		return row{}, err
	}
	start := time.Now()
	for i := range s.Clusters {
		if err := w.Client.Delete(ctx, clusterOf(s, prefix+strconv.Itoa(i))); err != nil {
			return row{}, err
		}
	}
	gone := func() (string, bool) {
		clusters, machines := len(w.clusters.named(prefix)), len(w.machines.named(prefix))
		return fmt.Sprintf("%d Clusters and %d Machines are left", clusters, machines), clusters+machines == 0
	}
	if err := w.await(ctx, gone); err != nil {
		return row{}, err
	}
	s.Name += ", deleted"
	s.OneAtATime, s.CompareWritesToBaseline = false, false
	return m.row(ctx, s, time.Since(start).Seconds())
}

// meter is what requests and CPU were when it started.
type meter struct {
	world                  *world
	requests               map[request]float64
	managersCPU, serverCPU float64
}

func (w *world) meter(ctx context.Context) (*meter, error) {
	m := &meter{world: w}
	var err error
	m.requests, err = w.requests(ctx)
	m.managersCPU, m.serverCPU = w.cpu()
	return m, err
}

// row is the cost since the meter started, and of the seconds that follow: consequences are part of the cost.
func (m *meter) row(ctx context.Context, s scenario, seconds float64) (row, error) {
	r := row{scenario: s, Seconds: seconds}
	if err := pause(ctx, aftermath); err != nil {
		return r, err
	}
	managers, server := m.world.cpu()
	r.ManagersCPU, r.ServerCPU = managers-m.managersCPU, server-m.serverCPU
	r.ManagersMemory = m.world.memory()
	if s.CompareWritesToBaseline { // The others would take too long.
		most := heldMost
		if s.OneAtATime {
			most = held
		}
		if err := pause(ctx, most); err != nil {
			return r, err
		}
	}
	after, err := m.world.requests(ctx)
	if err != nil {
		return r, err
	}
	r.count(m.requests, after)
	return r, nil
}

func (r *row) count(before, after map[request]float64) {
	r.requests = map[request]float64{}
	for k, n := range after {
		n -= before[k]
		if n == 0 {
			continue
		}
		r.requests[k] = n
		switch k.verb {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			r.Writes += n
		case "GET", "LIST":
			r.Reads += n
		}
	}
	r.Writes -= float64(r.Clusters) // this program's own
}

func clusterOf(s scenario, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"clusterNetwork": map[string]any{
				"services":      map[string]any{"cidrBlocks": []any{"10.128.0.0/12"}},
				"pods":          map[string]any{"cidrBlocks": []any{"192.168.0.0/16"}},
				"serviceDomain": "cluster.local",
			},
			"topology": map[string]any{
				"class": "in-memory-quick-start", "version": "v1.29.2",
				"controlPlane": map[string]any{"replicas": int64(s.ControlPlanes)},
				"workers": map[string]any{"machineDeployments": []any{
					map[string]any{"class": "default-worker", "name": "md-0", "replicas": int64(s.Workers)},
				}},
			},
		},
	}}
}

// awaitRunning waits for this many Machines in phase Running.
func (w *world) awaitRunning(ctx context.Context, prefix string, want int) error {
	return w.await(ctx, func() (string, bool) {
		running := 0
		for _, m := range w.machines.named(prefix) {
			if phase, _, _ := unstructured.NestedString(m.Object, "status", "phase"); phase == "Running" {
				running++
			}
		}
		return fmt.Sprintf("%d of %d Machines are running", running, want), running >= want
	})
}

// await waits until a condition is true, which also says how far it is.
func (w *world) await(ctx context.Context, condition func() (state string, done bool)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		state, done := condition()
		if done {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("%s: %w; logs are in %s", state, err, w.Dir)
		}
	}
}

// requests reads the API server's request counters.
func (w *world) requests(ctx context.Context) (map[request]float64, error) {
	set, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		return nil, err
	}
	raw, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("parsing the API server's metrics: %w", err)
	}
	out := map[request]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["verb"] == "WATCH" || labels["verb"] == "CONNECT" || labels["resource"] == "" || labels["resource"] == "leases" {
			continue
		}
		resource := labels["resource"]
		if labels["subresource"] != "" {
			resource += "/" + labels["subresource"]
		}
		out[request{labels["verb"], resource, labels["code"]}] += m.GetCounter().GetValue()
	}
	return out, nil
}

// cpu returns the user and system time of the managers and of the API server, in seconds.
func (w *world) cpu() (managers, server float64) {
	for _, p := range w.managers {
		managers += cpuOf(p.Running.PID())
	}
	return managers, cpuOf(w.PID())
}

func cpuOf(pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond
}

// memory returns the resident memory of all managers, in MiB.
func (w *world) memory() int {
	total := 0
	for _, p := range w.managers {
		total += memoryOf(p.Running.PID())
	}
	return total
}

// memoryOf is the resident memory of a process, in MiB.
func memoryOf(pid int) int {
	program, own := resident(pid)
	return (program + own) / 1024
}
