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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	poll    = 100 * time.Millisecond
	settle  = 5 * time.Second
	timeout = 5 * time.Minute
	// ticksPerSecond is the kernel's unit of CPU time in /proc.
	ticksPerSecond = 100
)

// request is a kind of API request.
type request struct{ verb, resource, code string }

// row is what one scenario cost.
type row struct {
	scenario
	Writes, Reads          float64
	ManagersCPU, ServerCPU float64
	Seconds                float64
	ManagersMemory         int
	requests               map[request]float64
}

// measure applies the clusters of a scenario and waits until all their Machines run.
func (w *world) measure(ctx context.Context, s scenario, prefix string) (row, error) {
	before, err := w.requests(ctx)
	if err != nil {
		return row{}, err
	}
	managers, server := w.cpu()
	r := row{scenario: s}
	start := time.Now()
	polls := 0
	for i := range s.Clusters {
		if err := w.Client.Create(ctx, clusterOf(s, prefix+strconv.Itoa(i))); err != nil {
			return r, err
		}
		if s.OneAtATime {
			n, err := w.awaitRunning(ctx, prefix, (i+1)*(s.ControlPlanes+s.Workers))
			if err != nil {
				return r, err
			}
			polls += n
		}
	}
	n, err := w.awaitRunning(ctx, prefix, s.Clusters*(s.ControlPlanes+s.Workers))
	if err != nil {
		return r, err
	}
	polls += n
	r.Seconds = time.Since(start).Seconds()
	if s.OneAtATime {
		r.Seconds /= float64(s.Clusters)
	}
	if err := pause(ctx, settle); err != nil { // what still follows belongs to the cost
		return r, err
	}
	managersAfter, serverAfter := w.cpu()
	r.ManagersCPU, r.ServerCPU = managersAfter-managers, serverAfter-server
	r.ManagersMemory = w.memory()
	after, err := w.requests(ctx)
	if err != nil {
		return r, err
	}
	r.count(before, after, polls)
	return r, nil
}

func (r *row) count(before, after map[request]float64, polls int) {
	r.requests = map[request]float64{}
	r.Reads = 0 - float64(polls)
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
	r.Writes -= float64(r.Clusters) // the Clusters that this program created
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

// awaitRunning waits for this many Machines in phase Running, and says how often it asked.
func (w *world) awaitRunning(ctx context.Context, prefix string, want int) (polls int, err error) {
	deadline := time.Now().Add(timeout)
	for {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("cluster.x-k8s.io/v1beta1")
		list.SetKind("MachineList")
		if err := w.Client.List(ctx, list, client.InNamespace("default")); err != nil {
			return polls, err
		}
		polls++
		running := 0
		for _, m := range list.Items {
			phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
			if phase == "Running" && strings.HasPrefix(m.GetName(), prefix) {
				running++
			}
		}
		if running >= want {
			return polls, nil
		}
		if time.Now().After(deadline) {
			return polls, fmt.Errorf("%d of %d Machines run after %s; logs are in %s", running, want, timeout, w.Dir)
		}
		time.Sleep(poll)
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

// cpu is the user and system time of the managers and of the API server, in seconds.
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

// memory is the resident memory of all managers, in MiB.
func (w *world) memory() int {
	total := 0
	for _, p := range w.managers {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Running.PID()))
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(raw), "\n") {
			if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				kib, _ := strconv.Atoi(strings.Fields(rest)[0])
				total += kib / 1024
			}
		}
	}
	return total
}
