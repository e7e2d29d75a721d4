package journey

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestTakeoverCheck checks a management cluster that is at rest, and again after what others do while its managers are stopped: the check
// tells what the managers then write, and writes nothing itself.
func TestTakeoverCheck(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, shared.Management(t).Tools)
	testenv.Must(t, s.tools.install(t.Context(), s.kubeconfig()))
	w, storage := s.stoppedAtRest()

	storage.unwritten(func() {
		result, code := s.takeoverCheck()
		if code != 0 || len(result.Writes)+len(result.WorkloadClusters) > 0 {
			t.Errorf("exit status %d at rest, %+v", code, result)
		}
		if len(result.Notes) == 0 || result.Clusters != 1 {
			t.Errorf("%d notes about %d Clusters", len(result.Notes), result.Clusters)
		}
	})

	cluster := "/registry/cluster.x-k8s.io/clusters/" + w.Namespace + "/checked"
	storage.edit(cluster, func(o map[string]any) { delete(o["metadata"].(map[string]any), "finalizers") })
	if testenv.Soaks() { // A check takes half a minute, because it waits until nothing is written any longer.
		storage.unwritten(func() {
			result, code := s.takeoverCheck()
			if diff := cmp.Diff([]string{"Cluster + .metadata.finalizers[0]"}, result.changes()); diff != "" || code != 2 {
				t.Errorf("exit status %d after a finalizer was removed (-want +got):\n%s", code, diff)
			}
		})
	}

	storage.edit(cluster, func(o map[string]any) {
		topology := o["spec"].(map[string]any)["topology"].(map[string]any)
		workers := topology["workers"].(map[string]any)["machineDeployments"].([]any)
		workers[0].(map[string]any)["replicas"] = int64(2)
	})
	storage.unwritten(func() {
		result, code := s.takeoverCheck()
		found := slices.DeleteFunc(result.changes(), func(change string) bool {
			return !strings.HasSuffix(change, " created") && !strings.Contains(change, "finalizers")
		})
		want := []string{"Cluster + .metadata.finalizers[0]", "InMemoryMachine created", "KubeadmConfig created", "Machine created"}
		if diff := cmp.Diff(want, found); diff != "" || code != 3 {
			t.Errorf("exit status %d after a worker was added (-want +got):\n%s", code, diff)
		}
	})
}

// TestTakeoverCheckOfV17 checks a management cluster with the definitions, arguments and certificates of v1.7, which convert by webhooks, with
// workload clusters and without. Each change runs TestTakeoverCheck.
func TestTakeoverCheckOfV17(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	_, s := newPublished(t, shared.Management(t).Tools)
	w, storage := s.stoppedAtRest()
	for _, args := range [][]string{nil, {"--workload-clusters=false", "--namespace", w.Namespace}} {
		storage.unwritten(func() {
			result, code := s.takeoverCheck(args...)
			if code != 0 || len(result.Writes)+len(result.WorkloadClusters)+len(result.Failed) > 0 {
				t.Errorf("exit status %d with %v, %+v", code, args, result)
			}
			unread := slices.ContainsFunc(result.Notes, func(n note) bool { return n.About == "workload clusters" })
			if unread != (args != nil) || result.Clusters != 1 {
				t.Errorf("workload clusters were not read with %v: %t; %d Clusters", args, unread, result.Clusters)
			}
		})
	}
}

// stoppedAtRest creates a Cluster, and stops the managers of the core and of kubeadm when nothing of it is written any longer.
func (s *Standalone) stoppedAtRest() (*World, *stored) {
	s.t.Helper()
	w, storage := s.Management().World(s.t), s.storage()
	c := w.Subject(NewCluster("checked", w.Class(w.Tools.OlderTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	storage.rests(w.Namespace)
	w.stopManagers()
	c.Eventually("the managers have stopped", w.managersHaveStopped)
	return w, storage
}

// stopManagers scales the managers of the core and of kubeadm to zero.
func (w *World) stopManagers() {
	w.t.Helper()
	for _, d := range w.deployments() {
		if strings.HasPrefix(d.Namespace, "capi-") {
			before := d.DeepCopy()
			d.Spec.Replicas = new(int32)
			testenv.Must(w.t, w.Client.Patch(w.t.Context(), &d, client.MergeFrom(before)))
		}
	}
}

// managersHaveStopped is a Condition.
func (w *World) managersHaveStopped(*Snapshot) error {
	for _, d := range w.deployments() {
		if strings.HasPrefix(d.Namespace, "capi-") && !isStopped(d) {
			return errors.New(d.Name + " runs")
		}
	}
	return nil
}

func isStopped(d appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == 0 && d.Status.ReadyReplicas == 0
}

// heldBack is longer than managers hold reports back that nothing waits for (sdk/step/progress.go).
const heldBack = 15 * time.Second

// rests returns when nothing has been written in a namespace for so long that no report is held back. There is no event for that.
func (s *stored) rests(namespace string) {
	s.t.Helper()
	written, quiet := s.Etcd.Watch(s.t.Context(), "/registry/", clientv3.WithPrefix()), time.NewTimer(heldBack)
	defer quiet.Stop()
	for {
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("objects in namespace %s are written again and again", namespace)
		case response := <-written:
			testenv.Must(s.t, response.Err())
			if slices.ContainsFunc(response.Events, func(e *clientv3.Event) bool {
				return strings.Contains(string(e.Kv.Key), "/"+namespace+"/")
			}) {
				quiet.Reset(heldBack)
			}
		case <-quiet.C:
			return
		}
	}
}

// edit changes an object in the storage, without the webhooks of managers that do not run.
func (s *stored) edit(key string, change func(map[string]any)) {
	s.t.Helper()
	r, err := s.Etcd.Get(s.t.Context(), key)
	testenv.Must(s.t, err)
	if len(r.Kvs) != 1 {
		s.t.Fatalf("%d objects are stored as %s", len(r.Kvs), key)
	}
	o, err := parse(r.Kvs[0].Value)
	testenv.Must(s.t, err)
	change(o)
	content, err := json.Marshal(o)
	testenv.Must(s.t, err)
	_, err = s.Etcd.Put(s.t.Context(), key, string(content)+"\n")
	testenv.Must(s.t, err)
}

// unwritten fails if anything is stored while do runs.
func (s *stored) unwritten(do func()) {
	s.t.Helper()
	before, err := s.Etcd.Get(s.t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	testenv.Must(s.t, err)
	do()
	after, err := s.Etcd.Get(s.t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithMinModRev(before.Header.Revision+1))
	testenv.Must(s.t, err)
	for _, kv := range after.Kvs {
		s.t.Errorf("%s was written", kv.Key)
	}
	if before.Count == 0 {
		s.t.Error("nothing is stored")
	}
}

// checked is the result of a check.
type checked struct {
	Clusters         int
	Writes           []write
	WorkloadClusters []string
	Failed           []any
	Notes            []note
}

type note struct{ About, Text string }

// write is an object that would be written.
type write struct {
	Kind, Namespace, Name string
	Effect                difference.Effect
	Fields, Managers      []string
}

// changes returns what would be written, without names.
func (c checked) changes() []string {
	found := map[string]bool{}
	for _, w := range c.Writes {
		for _, field := range w.Fields {
			found[w.Kind+" "+field] = true
		}
		if len(w.Fields) == 0 {
			found[w.Kind+" "+string(w.Effect)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// takeoverCheck runs `clusterctl takeover check`, which runs capi, and returns the result and the exit status.
func (s *Standalone) takeoverCheck(args ...string) (checked, int) {
	s.t.Helper()
	args = append([]string{"takeover", "check", "--kubeconfig", s.kubeconfig(), "-o", "json"}, args...)
	cmd := exec.CommandContext(s.t.Context(), s.tools.clusterctl, args...)
	cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(s.tools.Capi))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	var result checked
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		s.t.Fatalf("%s printed %q, %s: %v", cmd, out.String(), errOut.String(), err)
	}
	return result, cmd.ProcessState.ExitCode()
}
