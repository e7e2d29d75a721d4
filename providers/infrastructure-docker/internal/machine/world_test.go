package machine

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build = object.Builder{}
	key   = types.NamespacedName{Namespace: "default", Name: "m"}
)

const (
	image     = "kindest/node:v1.36.3"
	container = "c-m"
)

// world is a management cluster, a workload cluster, a container runtime, and a controller, which can be killed.
type world struct {
	*fakeapi.Server
	*Controller
	set      kinds.Set
	runtime  *enginetest.Fake
	runner   *step.Runner[step.Object]
	workload *fakeapi.Workload

	lock sync.Mutex
	// killAt is after how many calls and requests the process is killed: before the last one has an effect, or after. Zero: never.
	killAt     int
	killBefore bool
	count      int
	dead       bool
	// attempts are the attempts to bootstrap in each container.
	attempts map[string]*attempts
	// outcome is the result of an attempt: exit code, whether kubeadm succeeded, failed step and log.
	outcome func(number int) (code int, reached bool, step, log string)
}

// attempts is what a container remembers.
type attempts struct {
	number int
	result string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldOf(t, kinds.Docker(), objects...)
}

func newWorldOf(t *testing.T, set kinds.Set, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		set:     set,
		Server:  fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{dockerv1.AddToScheme}, Objects: objects, Indexes: indexes(set)}),
		runtime: enginetest.New(), attempts: map[string]*attempts{},
		outcome: func(int) (int, bool, string, string) { return 0, true, "", "" },
	}
	w.workload = w.NewWorkload(t)
	faults := fakeapi.Faults{
		Before: func(r fakeapi.Request) error {
			if r.Cached {
				return nil
			}
			return w.interrupted(r.String(), false)
		},
		After: func(r fakeapi.Request, err error) error {
			if err != nil || r.Cached {
				return err
			}
			return w.interrupted(r.String(), true)
		},
	}
	w.Server.Faults, w.workload.Faults = faults, faults
	w.runtime.Fail = func(call, _ string) error { return w.interrupted(call, false) }
	w.runtime.KillAfter = func(call, _ string) bool { return w.interrupted(call, true) != nil }
	w.runtime.OnExec = w.exec
	w.restart(t)
	return w
}

// restart starts a new process.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.settle()
	w.lock.Lock()
	w.dead, w.killAt, w.count = false, 0, 0
	w.lock.Unlock()
	w.Controller = &Controller{Clients: w.ForController(), kinds: w.set, engine: w.runtime, workloads: w.workload, jobs: job.New(w.Server.Clock), pools: true}
	w.runner = w.declared().Runner(w.Clients)
}

// settle waits for all jobs of the process.
func (w *world) settle() {
	if w.Controller != nil {
		w.jobs.Wait()
	}
}

// interrupted kills the process at the chosen call: it does nothing afterwards. after is whether the call had its effect.
func (w *world) interrupted(call string, after bool) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !after && !w.dead {
		w.count++
	}
	if !w.dead && w.killAt > 0 && w.count >= w.killAt && w.killBefore != after {
		w.dead = true
	}
	if w.dead {
		return fmt.Errorf("%s: %w", call, enginetest.ErrKilled)
	}
	return nil
}

// exec runs commands in containers: the runner of package bootstrap, whose contract is tested there, and the import of images.
func (w *world) exec(name string, c engine.Command) error {
	if len(c.Args) < 7 || c.Args[3] != "bootstrap" {
		if c.Args[0] == "test" {
			return &engine.ExitError{Container: name, Program: "test", Code: 1}
		}
		if c.Stdin != nil {
			_, err := io.Copy(io.Discard, c.Stdin)
			return err
		}
		return nil
	}
	if _, err := io.Copy(io.Discard, c.Stdin); err != nil {
		return err
	}
	want, err := strconv.Atoi(c.Args[4])
	if err != nil {
		return err
	}
	created := 0
	for _, call := range w.runtime.Calls() {
		if call == "Create "+name {
			created++
		}
	}
	id := fmt.Sprint(name, created)
	w.lock.Lock()
	defer w.lock.Unlock()
	a := w.attempts[id]
	if a == nil {
		a = &attempts{}
		w.attempts[id] = a
	}
	if a.number < want {
		a.number++
		code, reached, failed, log := w.outcome(a.number)
		a.result = fmt.Sprintf("%d\n%d\n%s\n%s\n%s", a.number, code, map[bool]string{true: "yes", false: "no"}[reached], failed, log)
	}
	_, err = io.WriteString(c.Stdout, a.result)
	return err
}

// reconcile reconciles once.
func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
}

// run reconciles, as events would, until nothing changes.
func (w *world) run(t *testing.T) (last ctrl.Result, err error) {
	t.Helper()
	for range 20 {
		before := w.state()
		last, err = w.reconcile(t)
		w.settle()
		if err != nil || before == w.state() {
			return last, err
		}
	}
	t.Fatal("the machine does not settle")
	return last, err
}

// state is what changes until the controller waits for something else.
func (w *world) state() string {
	return fmt.Sprint(len(w.Writes), w.changing())
}

func (w *world) must(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := w.run(t)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) read(t *testing.T) *dockerv1.DockerMachine {
	t.Helper()
	obj := &dockerv1.DockerMachine{}
	testenv.Must(t, w.Server.Get(t.Context(), key, obj))
	return obj
}

func (w *world) gone(t *testing.T) bool {
	t.Helper()
	err := w.Server.Get(t.Context(), key, &dockerv1.DockerMachine{})
	testenv.Must(t, client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// change changes the object as another client.
func (w *world) change(t *testing.T, f func(*dockerv1.DockerMachine)) {
	t.Helper()
	obj := w.read(t)
	f(obj)
	status := obj.DeepCopy()
	testenv.Must(t, w.Server.Update(t.Context(), obj))
	status.ResourceVersion = obj.ResourceVersion
	testenv.Must(t, w.Server.Status().Update(t.Context(), status))
}

// remove deletes the object.
func (w *world) remove(t *testing.T) {
	t.Helper()
	testenv.Must(t, w.Server.Delete(t.Context(), w.read(t)))
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.Server.Clock.SetTime(w.Server.Clock.Now().Add(d)) }

// unregistered is a Node as kubelet creates it.
func unregistered(n *corev1.Node) { n.Spec, n.Status = corev1.NodeSpec{}, corev1.NodeStatus{} }

// joined creates the Node, as kubelet does.
func (w *world) joined(t *testing.T, with ...func(*corev1.Node)) {
	t.Helper()
	testenv.Must(t, w.workload.Client.Create(t.Context(), object.Node(container, append([]func(*corev1.Node){unregistered}, with...)...)))
}

func (w *world) node(t *testing.T) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	testenv.Must(t, w.workload.Client.Get(t.Context(), types.NamespacedName{Name: container}, n))
	return n
}

// changing returns the calls of the container runtime that change something.
func (w *world) changing() []string {
	return slices.DeleteFunc(w.runtime.Calls(), func(call string) bool {
		return strings.HasPrefix(call, "Inspect") || strings.HasPrefix(call, "List")
	})
}

func newCluster(with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	return build.Cluster(append([]func(*clusterv1.Cluster){object.InfrastructureReady}, with...)...)
}

// objects returns a Cluster, bootstrap data, a Machine and its DockerMachine.
func objects(with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) []client.Object {
	owner := build.Machine("m", func(m *clusterv1.Machine) {
		m.Spec.Version, m.Spec.Bootstrap.DataSecretName = "v1.36.3", ptr.To("data")
	})
	m := object.ControlledBy(&dockerv1.DockerMachine{ObjectMeta: build.Meta("DockerMachine", "m")}, owner)
	m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	for _, f := range with {
		f(owner, m)
	}
	return []client.Object{newCluster(), build.BootstrapData("data", "#cloud-config\nruncmd: [kubeadm join]\n"), owner, m}
}

func controlPlane(owner *clusterv1.Machine, m *dockerv1.DockerMachine) {
	owner.Labels[clusterv1.MachineControlPlaneLabel] = ""
	m.Labels[clusterv1.MachineControlPlaneLabel] = ""
}

// states returns an object's conditions in short form.
func states(obj *dockerv1.DockerMachine) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range obj.GetV1Beta1Conditions() {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
		if c.Message != "" {
			out[c.Type] += ": " + c.Message
		}
	}
	return out
}
