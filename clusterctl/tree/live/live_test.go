package live

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var (
	cluster = types.NamespacedName{Namespace: "ns", Name: "c1"}
	start   = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
)

func object(kind, name, phase, reason string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	u.SetAPIVersion("cluster.x-k8s.io/v1beta1")
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1"})
	status := "False"
	if reason == "" {
		status = "True"
	}
	if reason != "-" {
		u.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Ready", "status": status, "reason": reason}}
	}
	return u
}

// script is a Source that goes one step further each time it is asked for its objects.
type script struct {
	steps   []*tree.Objects
	n       int
	err     error
	changed chan struct{}
}

func newScript(steps ...*tree.Objects) *script {
	s := &script{steps: steps, changed: make(chan struct{}, 1)}
	s.changed <- struct{}{}
	return s
}

func (s *script) Changed() <-chan struct{} { return s.changed }
func (s *script) Err() error               { return s.err }

func (s *script) Objects(context.Context) (*tree.Objects, bool) {
	if s.n == len(s.steps) {
		return s.steps[s.n-1], true
	}
	s.n++
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.steps[s.n-1], s.steps[s.n-1] != nil
}

// phase waits until the Cluster has one.
func phase(wanted string) func(*tree.Objects) ([]string, error) {
	return func(o *tree.Objects) ([]string, error) {
		if found, _, _ := unstructured.NestedString(o.Cluster(cluster).Object, "status", "phase"); found != wanted {
			return []string{"phase " + wanted}, nil
		}
		return nil, nil
	}
}

func TestFollowWithoutTerminal(t *testing.T) {
	ms := object("MachineSet", "s", "", "")
	bootstrap := object("KubeadmConfig", "m1", "", "")
	bootstrap.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta1")
	bootstrap.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: "m1"}})
	infrastructure := object("ToyCluster", "c1", "", "-")
	infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	deleting := object("Machine", "m1", "Running", "")
	deleting.SetDeletionTimestamp(&metav1.Time{Time: start})
	source := newScript(
		nil,
		tree.NewObjects(object("Cluster", "c1", "", "-"), ms, infrastructure),
		tree.NewObjects(object("Cluster", "c1", "Provisioning", "Wait"), object("Machine", "m1", "Pending", "-"), ms, bootstrap, infrastructure),
		tree.NewObjects(object("Cluster", "c1", "Provisioning", "Wait"), object("Machine", "m1", "Pending", "-"), ms),
		tree.NewObjects(object("Cluster", "c1", "Provisioning", "Wait"), deleting),
		tree.NewObjects(object("Cluster", "c1", "Provisioned", "")),
	)
	var out bytes.Buffer
	f := &Follower{Screen: Screen{W: &out}, Source: source, Cluster: cluster, Clock: clocktesting.NewFakeClock(start)}
	if err := f.Follow(t.Context(), phase("Provisioned")); err != nil {
		t.Fatal(err)
	}
	want := `    0s  Cluster/c1: created
    0s  ToyCluster/c1: created
    0s  Cluster/c1: Provisioning: Wait
    0s  Machine/m1: Pending
    0s  ToyCluster/c1: deleted
    0s  Machine/m1: Deleting
    0s  Cluster/c1: Provisioned, ready
    0s  Machine/m1: deleted
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("One line per change of state, none for what goes along with a Machine: -want +got:\n%s", diff)
	}
	if f.Waiting() != nil {
		t.Errorf("nothing is waited for in the end, got %v", f.Waiting())
	}
}

func TestStateOfMachines(t *testing.T) {
	failed := object("Machine", "m1", "Running", "Lost")
	failed.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["severity"] = "Error"
	for want, m := range map[string]*unstructured.Unstructured{
		"created":            object("Machine", "m1", "", "-"),
		"Pending":            object("Machine", "m1", "Pending", "WaitingForInfrastructure"),
		"Running":            object("Machine", "m1", "Running", ""),
		"Running: Lost":      failed,
		"not ready: NoPhase": object("Machine", "m1", "", "NoPhase"),
	} {
		if got := stateOf(m); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

func TestFollowOnTerminal(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	source := newScript(
		tree.NewObjects(object("Cluster", "c1", "A", "")),
		tree.NewObjects(object("Cluster", "c1", "B", "")),
		tree.NewObjects(object("Cluster", "c1", "C", "Late")),
		tree.NewObjects(object("Cluster", "c1", "Done", "Late")),
	)
	var out bytes.Buffer
	f := &Follower{Screen: Screen{W: &out, Terminal: true}, Source: source, Cluster: cluster, Clock: clock}
	if err := f.Follow(t.Context(), phase("Done")); err != nil {
		t.Fatal(err)
	}
	want := "NAME        READY  SEVERITY  REASON  SINCE  MESSAGE\x1b[K\nCluster/c1  True\x1b[K\n\x1b[K\nWaiting for phase Done\x1b[K\n" + "\x1b[4A\r\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("No time has passed, so the terminal is drawn once, and cleared in the end: -want +got:\n%s", diff)
	}
}

func TestFollowLooksAgain(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	source := newScript(tree.NewObjects(object("Cluster", "c1", "A", "")))
	<-source.changed
	f := &Follower{Screen: Screen{W: &bytes.Buffer{}}, Source: source, Cluster: cluster, Clock: clock}
	source.n = len(source.steps) // Nothing changes from now on.
	done := make(chan error)
	go func() {
		done <- f.Follow(t.Context(), func(*tree.Objects) ([]string, error) {
			if clock.Since(start) < lookInterval {
				return []string{"timeout to end"}, nil
			}
			return nil, nil
		})
	}()
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	clock.Step(lookInterval)
	if err := <-done; err != nil {
		t.Errorf("time alone can end a wait; got %v", err)
	}
}

func TestFollowEnds(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("no"))
	canceled, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		reason    string
		ctx       context.Context
		err       error
		remaining func(*tree.Objects) ([]string, error)
		want      error
	}{
		"Context":   {"The context's cause is returned.", canceled, nil, phase("Never"), why},
		"Forbidden": {"What may not be read will not come.", t.Context(), forbidden, phase("Never"), forbidden},
		"Failed":    {"Permanent failures end the wait immediately.", t.Context(), nil, func(*tree.Objects) ([]string, error) { return nil, failed }, failed},
	} {
		t.Run(name, func(t *testing.T) {
			source := newScript(tree.NewObjects(object("Cluster", "c1", "A", "")))
			source.err = tc.err
			f := &Follower{Screen: Screen{W: &bytes.Buffer{}}, Source: source, Cluster: cluster, Clock: clocktesting.NewFakeClock(start)}
			if err := f.Follow(tc.ctx, tc.remaining); !errors.Is(err, tc.want) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{W: &out, Size: func() (int, int) { return 6, 5 }}
	s.Draw([]string{"one"})
	s.Draw([]string{"one"})
	s.Draw([]string{"\x1b[32mlonger\x1b[0m than wide", "2"})
	s.Draw([]string{"1", "2", "3", "4", "5", "last"})
	s.Draw([]string{"1", "two"})
	s.Clear()
	s.Clear()
	want := strings.Join([]string{
		"one\x1b[K\n",
		"\x1b[1A\r" + "\x1b[32mlonge\x1b[0m\x1b[K\n2\x1b[K\n",
		"\x1b[2A\r" + "1\x1b[K\n\n... 3\x1b[K\nlast\x1b[K\n",
		"\x1b[4A\r" + "\ntwo\x1b[K\n\x1b[J",
		"\x1b[2A\r\x1b[J",
	}, "")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("Only changes are drawn, and never more than can be drawn over: -want +got:\n%s", diff)
	}
}
