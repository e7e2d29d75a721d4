package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestFeatures shows on real Nodes what Machines, rules and configurations ask for, in one Cluster without a class: the validity of
// certificates, taints, kubelets that are changed in place, and the order of a drain. No Machine is replaced except the one that is
// drained.
func TestFeatures(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := featured.World(t)
	w.Patient()
	extended(t, w)
	applyFile(t, w, "drainrules.yaml")
	var c *journey.Subject
	stage(t, "3 control plane machines and 2 workers", func() {
		c = subject(t, w, withoutClass("features"))
		applyFile(t, w, "features.yaml")
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), journey.Version(newer), c.WorkloadMatches)
	})
	validity(t, c)
	before := c.Snapshot()
	still := c.Always("no Machine is replaced", journey.SameMachines((*journey.Snapshot).ControlPlane, before), journey.SameMachines((*journey.Snapshot).Workers, before))
	stage(t, "changed taints", func() { changesTaints(t, c) })
	stage(t, "changed kubelets of 3 control plane machines in place", func() { updatesInPlace(t, c) })
	stage(t, "changed kubelets of 2 workers in place", func() { updatesWorkersInPlace(t, c) })
	still()
	stage(t, "drained a worker and replaced it", func() { drains(t, c) })
	stage(t, "deleted", func() { gone(t, c) })
}

// day is the unit of validity periods.
const day = 24 * time.Hour

// validity checks the times in testdata/features.yaml: of the CAs that the control plane has created, and of the certificates that
// kubeadm has issued on all three machines.
func validity(t *testing.T, c *journey.Subject) {
	t.Helper()
	check := func(what string, certificate *x509.Certificate, days int) {
		got, want := certificate.NotAfter.Sub(certificate.NotBefore), time.Duration(days)*day
		if got < want || got > want+time.Hour { // It begins before it is issued, because clocks differ.
			t.Errorf("%s is valid for %s, want %d days", what, got, days)
		}
	}
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA} {
		secret := &corev1.Secret{}
		if err := c.Client.Get(t.Context(), pki.SecretKey(c.Key(), purpose), secret); err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(secret.Data[pki.CertificateKey])
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		check(string(purpose), ca, 400)
	}
	for _, m := range c.Snapshot().ControlPlane() {
		check("the certificate of the API server of "+m.Name, certificateOf(t, c, &m), 30)
	}
}

// onNodes is a Condition: all Nodes of these Machines satisfy is.
func onNodes(t *testing.T, c *journey.Subject, which func(*journey.Snapshot) []clusterv1.Machine, is func(*corev1.Node) error) journey.Condition {
	return func(p *journey.Snapshot) error {
		nodes, err := c.Workload().Nodes(t.Context())
		if err != nil {
			return err
		}
		for _, m := range which(p) {
			i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return m.Status.NodeRef != nil && n.Name == m.Status.NodeRef.Name })
			if i < 0 {
				return fmt.Errorf("Machine %s has no Node", m.Name)
			}
			if err := is(&nodes[i]); err != nil {
				return fmt.Errorf("Node %s: %w", nodes[i].Name, err)
			}
		}
		return nil
	}
}

// tainted is satisfied by Nodes with these taints of example.com, as kubectl prints them.
func tainted(want ...string) func(*corev1.Node) error {
	return func(n *corev1.Node) error {
		var got []string
		for i := range n.Spec.Taints {
			if taint := &n.Spec.Taints[i]; strings.HasPrefix(taint.Key, "example.com/") {
				got = append(got, taint.ToString())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("taints (-want +got):\n" + diff)
		}
		return nil
	}
}

// changesTaints checks the taints of all Nodes, removes one that is set once, as a client of the workload cluster does, and changes those of
// the templates.
func changesTaints(t *testing.T, c *journey.Subject) {
	t.Helper()
	workers, plane := (*journey.Snapshot).Workers, (*journey.Snapshot).ControlPlane
	const once = "example.com/once:PreferNoSchedule"
	c.Eventually("the Nodes have taints", onNodes(t, c, plane, tainted("example.com/plane:PreferNoSchedule")),
		onNodes(t, c, workers, tainted("example.com/kept=a:PreferNoSchedule", once)))
	kubectl(t, c, "taint", "nodes", "--selector", "!node-role.kubernetes.io/control-plane", "example.com/once-")
	template := func(body string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(body)) }
	key := metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}
	for _, change := range []struct {
		of    client.Object
		patch string
	}{
		{&clusterv1beta2.MachineDeployment{ObjectMeta: key}, `{"spec": {"template": {"spec": {"taints": [
			{"key": "example.com/kept", "value": "b", "effect": "PreferNoSchedule", "propagation": "Always"},
			{"key": "example.com/once", "effect": "PreferNoSchedule", "propagation": "OnInitialization"},
			{"key": "example.com/new", "effect": "PreferNoSchedule", "propagation": "Always"}]}}}}`},
		{&controlplanev1.KubeadmControlPlane{ObjectMeta: key}, `{"spec": {"machineTemplate": {"spec": {"taints": null}}}}`},
	} {
		if err := c.Client.Patch(t.Context(), change.of, template(change.patch)); err != nil {
			t.Fatal(err)
		}
	}
	c.Eventually("the Nodes follow the templates", journey.Ready, onNodes(t, c, plane, tainted()),
		onNodes(t, c, workers, tainted("example.com/kept=b:PreferNoSchedule", "example.com/new:PreferNoSchedule")))
}

// extended installs the test extension, and waits until the management cluster knows it.
func extended(t *testing.T, w *journey.World) {
	t.Helper()
	r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--runtime-extension", "test", "--wait-providers")
	if r.Failed {
		t.Fatal(r)
	}
	applyFile(t, w, "extension.yaml")
	r = w.Tools.Kubectl(t.Context(), "", "--kubeconfig", w.Kubeconfig, "wait", "extensionconfig/kubelets", "--for", "condition=Discovered", "--timeout", "60s")
	if r.Failed {
		t.Fatal(r)
	}
}

// updatesInPlace has the test extension change max-pods of the kubelets of the control plane: neither Machines nor containers are new, and
// the API server and etcd are available.
func updatesInPlace(t *testing.T, c *journey.Subject) {
	t.Helper()
	plane := (*journey.Snapshot).ControlPlane
	c.Eventually("max-pods is that of the template", maxPods(t, c, plane, "100"))
	before := started(t, plane(c.Snapshot()))
	api, members := writes(t, c), quorum(t, c)
	const registration = `{"nodeRegistration": {"kubeletExtraArgs": [{"name": "max-pods", "value": "120"}]}}`
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	patch := `{"spec": {"kubeadmConfigSpec": {"initConfiguration": ` + registration + `, "joinConfiguration": ` + registration + `}}}`
	if err := c.Client.Patch(t.Context(), kcp, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the kubelets are changed", journey.Ready, journey.ControlPlanes(3), maxPods(t, c, plane, "120"), upToDate(t, c), c.WorkloadMatches)
	api.end(10 * time.Second)
	members.end(10 * time.Second)
	if diff := cmp.Diff(before, started(t, plane(c.Snapshot()))); diff != "" {
		t.Errorf("containers, and when they were started (-before +after):\n%s", diff)
	}
	noPodsAreLeft(t, c)
}

// updatesWorkersInPlace does the same with the workers: their MachineDeployment gets another template.
func updatesWorkersInPlace(t *testing.T, c *journey.Subject) {
	t.Helper()
	workers := (*journey.Snapshot).Workers
	before := started(t, workers(c.Snapshot()))
	md := &clusterv1beta2.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	patch := `{"spec": {"template": {"spec": {"bootstrap": {"configRef": {"name": "features-limited"}}}}}}`
	if err := c.Client.Patch(t.Context(), md, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the kubelets are changed", maxPods(t, c, workers, "90"), notUpdating(workers), journey.Ready, journey.Workers(2), c.WorkloadMatches)
	if diff := cmp.Diff(before, started(t, workers(c.Snapshot()))); diff != "" {
		t.Errorf("containers, and when they were started (-before +after):\n%s", diff)
	}
	noPodsAreLeft(t, c)
}

// noPodsAreLeft checks that the test extension has deleted its Pods.
func noPodsAreLeft(t *testing.T, c *journey.Subject) {
	t.Helper()
	left := kubectl(t, c, "get", "pods", "--namespace", "kube-system", "--selector", "app.kubernetes.io/name=test-extension", "--output", "name")
	if left != "" {
		t.Errorf("Pods of the extension are left: %s", left)
	}
}

// maxPods is a Condition: the Nodes of these Machines have a capacity for so many Pods.
func maxPods(t *testing.T, c *journey.Subject, which func(*journey.Snapshot) []clusterv1.Machine, want string) journey.Condition {
	return onNodes(t, c, which, func(n *corev1.Node) error {
		if got := n.Status.Capacity.Pods().String(); got != want {
			return fmt.Errorf("capacity for %s Pods, want %s", got, want)
		}
		return nil
	})
}

// started returns the IDs of the containers of Machines, and when they were started.
func started(t *testing.T, machines []clusterv1.Machine) []string {
	t.Helper()
	args := []string{"inspect", "--format", "{{.Name}} {{.Id}} {{.State.StartedAt}}"}
	for _, m := range machines {
		args = append(args, containerOf(m))
	}
	words := must(t, args...)
	return words
}

// upToDate is a Condition: all replicas of the control plane are up to date, and none is being updated.
func upToDate(t *testing.T, c *journey.Subject) journey.Condition {
	return func(p *journey.Snapshot) error {
		kcp := &controlplanev1.KubeadmControlPlane{}
		if err := c.Client.Get(t.Context(), c.Key(), kcp); err != nil {
			return err
		}
		if n := kcp.Status.UpToDateReplicas; n == nil || *n != 3 {
			return fmt.Errorf("%v replicas are up to date", n)
		}
		return notUpdating((*journey.Snapshot).ControlPlane)(p)
	}
}

// notUpdating is a Condition: none of these Machines is being updated.
func notUpdating(which func(*journey.Snapshot) []clusterv1.Machine) journey.Condition {
	return func(p *journey.Snapshot) error {
		for _, m := range which(p) {
			if _, updating := m.Annotations[clusterv1beta2.UpdateInProgressAnnotation]; updating {
				return fmt.Errorf("Machine %s is being updated", m.Name)
			}
		}
		return nil
	}
}

// workload returns a client of the workload cluster.
func workload(t *testing.T, c *journey.Subject) kubernetes.Interface {
	t.Helper()
	config := c.Workload().Config()
	config.Timeout = 0 // Watches have none.
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}
