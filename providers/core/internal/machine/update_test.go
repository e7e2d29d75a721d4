package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// updater is an extension that gives its answers one after another, and the last one for ever.
type updater struct {
	answers []runtimehooksv1.UpdateMachineResponse
	err     error
	// called are the names of the objects that it was called with.
	called []string
	// during acts while the extension works.
	during func()
}

// Handlers implements inplace.Caller.
func (u *updater) Handlers(context.Context, runtimecatalog.Hook, client.Object) ([]string, error) {
	return []string{"update.x"}, nil
}

// CallOnly implements inplace.Caller.
func (u *updater) CallOnly(_ context.Context, _ runtimecatalog.Hook, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
	desired := request.(*runtimehooksv1.UpdateMachineRequest).Desired
	var infra unstructured.Unstructured
	if err := infra.UnmarshalJSON(desired.InfrastructureMachine.Raw); err != nil {
		return err
	}
	size, _, _ := unstructured.NestedString(infra.Object, "spec", "size")
	u.called = append(u.called, fmt.Sprintf("%s %s", desired.Machine.Spec.Version, size))
	if u.during != nil {
		u.during()
	}
	if u.err != nil {
		return u.err
	}
	*response.(*runtimehooksv1.UpdateMachineResponse) = u.answers[0]
	if len(u.answers) > 1 {
		u.answers = u.answers[1:]
	}
	return nil
}

func running(after int32, message string) runtimehooksv1.UpdateMachineResponse {
	r := runtimehooksv1.UpdateMachineResponse{}
	r.RetryAfterSeconds, r.Message = after, message
	return r
}

// marked marks an object as being updated.
func marked[T client.Object](obj T) T {
	inplace.Mark(obj)
	return obj
}

// written makes a Machine one whose owner has written all that is desired.
func written(m *clusterv1.Machine) {
	inplace.Mark(m)
	inplace.MarkPending(m)
	m.Spec.Version = "v1.2.0"
}

func updatable(size string) *unstructured.Unstructured {
	return infraMachine(fields{"spec": fields{"providerID": id, "size": size}, "status": fields{"ready": true}})
}

func updateWorld(t *testing.T, u *updater, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(objects, build.Cluster())...)
	if u != nil {
		w.updater = u
	}
	return w
}

// run reads the Machine from the cache, and runs the step.
func (w *world) runUpdate(t *testing.T) (scope, time.Duration, error) {
	t.Helper()
	s := scope{machine: machine(), cluster: build.Cluster()}
	testenv.Must(t, w.Clients.Client.Get(t.Context(), client.ObjectKeyFromObject(s.machine), s.machine))
	result, err := w.step(t, "update", &s)
	return s, result.After(), err
}

func TestUpdate(t *testing.T) {
	const mark, pending = clusterv1.UpdateInProgressAnnotation, runtimev1.PendingHooksAnnotation
	finished := []string{"patch GenericMachine m-1", "patch GenericConfig m-1", "patch Machine m-1"}
	for _, tc := range []struct {
		reason        string
		extension     *updater
		machine       *clusterv1.Machine
		infra, config *unstructured.Unstructured
		want          string
		called        []string
		writes        []string
		after         time.Duration
		failed        bool
	}{
		{
			reason: "a Machine without marks is not updated", extension: &updater{}, machine: machine(), infra: updatable("l"), config: config(nil),
			want: "False NotUpdating ",
		},
		{
			reason: "without the feature gates, the update waits for them", machine: machine(written), infra: marked(updatable("l")), config: marked(config(nil)),
			want: "True InPlaceUpdating Waiting for the feature gates RuntimeSDK and InPlaceUpdates of the core provider",
		},
		{
			reason: "the owner has not written everything yet", extension: &updater{}, machine: marked(machine()), infra: marked(updatable("l")), config: config(nil),
			want: "True InPlaceUpdating Waiting for the owner of the Machine to write what is desired",
		},
		{
			reason: "the extension is called with what is desired, and again when it says", machine: machine(written),
			extension: &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(30, "restarting kubelet")}},
			infra:     marked(updatable("l")), config: marked(config(nil)),
			want: "True InPlaceUpdating restarting kubelet", called: []string{"v1.2.0 l"}, after: 30 * time.Second,
		},
		{
			reason: "an extension may have nothing to say", extension: &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(5, "")}},
			machine: machine(written), infra: marked(updatable("l")), config: marked(config(nil)),
			want: "True InPlaceUpdating In-place update in progress", called: []string{"v1.2.0 l"}, after: 5 * time.Second,
		},
		{
			reason: "when it is complete, the marks of the Machine are removed last", extension: &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(0, "")}},
			machine: machine(written), infra: marked(updatable("l")), config: marked(config(nil)),
			want: "False NotUpdating ", called: []string{"v1.2.0 l"}, writes: finished,
		},
		{
			reason: "after an interruption, the rest of the marks is removed without another call", extension: &updater{},
			machine: machine(written), infra: updatable("l"), config: marked(config(nil)),
			want: "False NotUpdating ", writes: finished[1:],
		},
		{
			reason: "a failure is reported, and the update is tried again", extension: &updater{err: errors.New("no disk")},
			machine: machine(written), infra: marked(updatable("l")), config: marked(config(nil)), failed: true,
			want: "True InPlaceUpdateFailed UpdateMachine hook failed: no disk", called: []string{"v1.2.0 l"},
		},
		{
			reason: "a busy extension is called later", extension: &updater{err: &extension.BusyError{Handler: "h.x"}},
			machine: machine(written), infra: marked(updatable("l")), config: marked(config(nil)),
			want: "True InPlaceUpdating In-place update in progress", called: []string{"v1.2.0 l"}, after: 5 * time.Second,
		},
		{
			reason: "a Machine may have no bootstrap config", extension: &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(0, "")}},
			machine: machine(written, func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} }), infra: marked(updatable("l")), config: config(nil),
			want: "False NotUpdating ", called: []string{"v1.2.0 l"}, writes: []string{finished[0], finished[2]},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := updateWorld(t, tc.extension, tc.machine, tc.infra, tc.config)
			s, after, err := w.runUpdate(t)
			if (err != nil) != tc.failed || after != tc.after {
				t.Errorf("error %v, again after %s, want %s", err, after, tc.after)
			}
			c := s.updatingReport()
			if got := fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message); got != tc.want {
				t.Errorf("Updating is %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if tc.extension != nil {
				if diff := cmp.Diff(tc.called, tc.extension.called); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
			got := machine()
			testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got))
			_, isMarked := got.Annotations[mark]
			_, isPending := got.Annotations[pending]
			if ended := slices.Contains(tc.writes, "patch Machine m-1"); ended && (isMarked || isPending) {
				t.Errorf("annotations %v: the marks are removed", got.Annotations)
			}
		})
	}
}

// The extension is not called before it wants to be, whatever triggers reconciles, unless something else is desired.
func TestUpdateIsNotRepeatedTooSoon(t *testing.T) {
	u := &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(60, "working")}}
	w := updateWorld(t, u, machine(written), marked(updatable("l")), marked(config(nil)))
	for range 3 {
		s, after, err := w.runUpdate(t)
		if c := s.updatingReport(); err != nil || after != time.Minute || c.Message != "working" {
			t.Errorf("error %v, after %s, condition %+v", err, after, c)
		}
	}
	w.Clock.Step(20 * time.Second)
	if _, after, _ := w.runUpdate(t); after != 40*time.Second || len(u.called) != 1 {
		t.Errorf("again after %s, want 40s; calls %q, want one", after, u.called)
	}
	w.Clock.Step(40 * time.Second)
	w.runUpdate(t)
	infra := updatable("")
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(infra), infra))
	testenv.Must(t, unstructured.SetNestedField(infra.Object, "xl", "spec", "size"))
	infra.SetGeneration(infra.GetGeneration() + 1)
	testenv.Must(t, w.Client.Update(t.Context(), infra))
	w.runUpdate(t)
	if diff := cmp.Diff([]string{"v1.2.0 l", "v1.2.0 l", "v1.2.0 xl"}, u.called); diff != "" {
		t.Errorf("after its time, and when something else is desired (-want +got):\n%s", diff)
	}
}

// The owner changes its mind while the extension works: what was complete is not what is desired any longer, and the marks stay.
func TestAnUpdateIsNotCompleteIfSomethingElseIsDesired(t *testing.T) {
	for _, kind := range []string{"GenericMachine", "GenericConfig", "Machine"} {
		t.Run(kind, func(t *testing.T) {
			u := &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(0, "")}}
			w := updateWorld(t, u, machine(written), marked(updatable("l")), marked(config(nil)))
			u.during = func() {
				u.during = nil
				changed := map[string]client.Object{"GenericMachine": updatable(""), "GenericConfig": config(nil), "Machine": machine()}[kind]
				testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
				changed.SetLabels(map[string]string{"changed": "now"})
				testenv.Must(t, w.Client.Update(t.Context(), changed))
			}
			if _, _, err := w.runUpdate(t); err == nil {
				t.Error("the change is not noticed")
			}
			got := machine()
			testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got))
			if !inplace.IsMarked(got) || !inplace.IsPending(got) {
				t.Errorf("annotations %v: the Machine is still to be updated", got.Annotations)
			}
		})
	}
}

// Whatever request is the last one, the update completes after the restart, and the extension gets what is desired.
func TestUpdateSurvivesKills(t *testing.T) {
	for _, killed := range []string{"patch GenericMachine m-1", "patch GenericConfig m-1", "patch Machine m-1"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, response lost: %t", killed, lost), func(t *testing.T) {
				u := &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(0, "")}}
				w := updateWorld(t, u, machine(written), marked(updatable("l")), marked(config(nil)))
				kill := func(r fakeapi.Request) error {
					if r.String() == killed {
						return errors.New("killed")
					}
					return nil
				}
				if lost {
					w.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
				} else {
					w.Before = kill
				}
				if _, _, err := w.runUpdate(t); err == nil {
					t.Fatal("the interruption has no effect")
				}
				w.Before, w.After = nil, nil
				w.attempts.Clear()
				if s, _, err := w.runUpdate(t); err != nil || s.found.update != nil {
					t.Errorf("error %v, condition %+v: the update is complete", err, s.found.update)
				}
				for _, obj := range []client.Object{machine(), updatable(""), config(nil)} {
					testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
					if inplace.IsMarked(obj) {
						t.Errorf("%T is still marked", obj)
					}
				}
			})
		}
	}
}

// A cache that does not show yet what is desired does not make the extension complete another update.
func TestUpdateWithAStaleCache(t *testing.T) {
	u := &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(0, "")}}
	w := updateWorld(t, u, machine(written), updatable("s"), config(nil))
	w.Cache.Freeze(&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": infrastructure + "/v1", "kind": "GenericMachineList"}})
	infra, bootstrap := updatable(""), config(nil)
	for _, obj := range []*unstructured.Unstructured{infra, bootstrap} {
		testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	}
	testenv.Must(t, unstructured.SetNestedField(infra.Object, "l", "spec", "size"))
	testenv.Must(t, w.Client.Update(t.Context(), marked(infra)))
	testenv.Must(t, w.Client.Update(t.Context(), marked(bootstrap)))
	if _, _, err := w.runUpdate(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1.2.0 l"}, u.called); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Machine that is being updated is in phase Updating, and neither ready nor available.
func TestUpdatingMachinesAreNotReady(t *testing.T) {
	u := &updater{answers: []runtimehooksv1.UpdateMachineResponse{running(60, "restarting kubelet")}}
	w := updateWorld(t, u, marked(config(fields{"status": fields{"ready": true, "dataSecretName": "s"}})), marked(updatable("l")), machine(written, withNode))
	testenv.Must(t, w.workload.Client.Create(t.Context(), node(healthy)))
	s := scope{machine: machine(), cluster: build.Cluster(object.Initialized)}
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(s.machine), s.machine))
	for _, name := range []string{"bootstrap", "infrastructure", "node", "update", "phase", "report"} {
		if _, err := w.step(t, name, &s); err != nil {
			t.Fatalf("step %s: %v", name, err)
		}
	}
	ready, available := report.Find(s.found.reports, clusterv1.ReadyCondition), report.Find(s.found.reports, clusterv1.AvailableCondition)
	if s.machine.Status.Phase != "Updating" || ready.Status != "False" || !strings.HasPrefix(ready.Message, "* Updating: restarting kubelet\n") || available.Status != "False" {
		t.Errorf("phase %s, Ready %+v, Available %+v", s.machine.Status.Phase, ready, available)
	}
}
