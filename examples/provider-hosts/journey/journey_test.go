// Package journey takes a whole cluster through its life on Hosts, as users would: they start capi, run clusterctl init, generate and
// delete, scale with kubectl, and find out which Hosts they have.
//
// Real are the API servers of the management and the workload cluster with their storage, Cluster API's managers, clusterctl, the provider's
// manager with its ServiceAccount and webhooks, its components and template, SSH, and the provider's scripts in a shell. Simulated is
// what the scripts call on a Host (simulated_test.go): cloud-init, kubeadm and the kubelet. There is no etcd member of the workload cluster
// to inspect, so the control plane has one machine.
package journey

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestCluster takes a Cluster through its life in each contract: the definitions have the label of one alone.
func TestCluster(t *testing.T) {
	w := newWorld(t)
	w.webhooks()
	for _, tc := range []struct {
		contract string
		// version is that of HostClusters, which differs because status.failureDomains does.
		version string
		workers int
		then    func(*world)
	}{
		{"v1beta2", "v1alpha2", 1, (*world).scaled},
		{"v1beta1", "v1alpha1", 0, func(*world) {}},
	} {
		t.Run("contract "+tc.contract, func(t *testing.T) {
			w.labels(t, tc.contract)
			w := w.cluster(t)
			w.host("rack1-control", hostsv1.RoleControlPlane)
			w.host("rack1-a", hostsv1.RoleWorker)
			w.host("rack2-b", hostsv1.RoleWorker)
			w.clusterctl("generate", "cluster", "demo", "--infrastructure", "hosts", "--target-namespace", w.namespace, "--kubernetes-version", "v1.31.2",
				"--control-plane-machine-count", "1", "--worker-machine-count", strconv.Itoa(tc.workers))
			w.apply(w.output)
			w.eventuallyRunning(1 + tc.workers)
			w.eventuallyReady(tc.version)
			tc.then(w)
			w.deleted()
		})
	}
}

// eventuallyReady waits until the Cluster is ready and has its failure domains. References of v1beta1 show the version of the HostCluster
// that core reads.
func (w *world) eventuallyReady(version string) {
	w.t.Helper()
	w.eventually("the Cluster to be ready", func() error {
		cluster, older := &clusterv1.Cluster{}, &clusterv1beta1.Cluster{}
		if err := errors.Join(w.Get(w.t.Context(), w.key("demo"), cluster), w.Get(w.t.Context(), w.key("demo"), older)); err != nil {
			return err
		}
		if !condition.IsTrue(cluster, clusterv1.ReadyV1Beta1Condition) || !report.IsTrue(cluster, clusterv1.InfrastructureReadyCondition) {
			return fmt.Errorf("its conditions are %v and %v", cluster.GetConditions(), cluster.GetV1Beta1Conditions())
		}
		want := []clusterv1.FailureDomain{{Name: "rack1", ControlPlane: ptr.To(true)}, {Name: "rack2"}}
		if diff := cmp.Diff(want, cluster.Status.FailureDomains); diff != "" {
			return fmt.Errorf("its failure domains (-want +got):\n%s", diff)
		}
		if ref := older.Spec.InfrastructureRef; ref == nil || ref.GroupVersionKind().Version != version {
			return fmt.Errorf("it refers to %v, want %s", ref, version)
		}
		return nil
	})
}

// scaled adds and removes workers.
func (w *world) scaled() {
	w.t.Helper()
	w.scale(2)
	w.eventuallyRunning(3)
	first := w.claims()
	if want := []string{"rack1-a", "rack1-control", "rack2-b"}; !cmp.Equal(want, slices.Sorted(maps.Keys(first))) {
		w.t.Errorf("the Hosts are claimed by %v", first)
	}

	w.scale(1)
	w.eventuallyRunning(2)
	var free string
	w.eventually("a Host to be released", func() error {
		claims := w.claims()
		for _, worker := range []string{"rack1-a", "rack2-b"} {
			if _, claimed := claims[worker]; !claimed {
				free = worker
				return nil
			}
		}
		return fmt.Errorf("all are claimed: %v", claims)
	})
	w.clean(free)

	w.scale(2)
	w.eventuallyRunning(3)
	if again := w.claims()[free]; again == "" || again == first[free] {
		w.t.Errorf("the Host that was released is claimed by %q, before it was by %q", again, first[free])
	}
}

// deleted deletes the Cluster, and checks that nothing of it is left.
func (w *world) deleted() {
	w.t.Helper()
	w.clusterctl("delete", "cluster", "demo", "--namespace", w.namespace, "--wait")
	w.eventually("all Hosts to be released", func() error {
		if claims := w.claims(); len(claims) > 0 {
			return fmt.Errorf("%v", claims)
		}
		return nil
	})
	for name := range w.servers {
		w.clean(name)
	}
	list := &hostsv1.HostMachineList{}
	if err := w.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil || len(list.Items) > 0 {
		w.t.Errorf("HostMachines are left: %v, %v", list.Items, err)
	}
}

// webhooks checks that requests of users reach the webhooks.
func (w *world) webhooks() {
	w.t.Helper()
	host := &hostsv1.Host{ObjectMeta: w.meta("h"), Spec: hostsv1.HostSpec{Address: "10.0.0.1", SSHKeySecret: "key", HostKeys: []string{"nonsense"}}}
	if err := w.Create(w.t.Context(), host); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "hostKeys[0] is not a public key") {
		w.t.Errorf("a Host with an invalid key: %v", err)
	}
	template := &hostsv1.HostMachineTemplate{ObjectMeta: w.meta("t")}
	w.create(template)
	template.Spec.Template.Spec.ResetCommand = "true"
	if err := w.Update(w.t.Context(), template); !apierrors.IsInvalid(err) {
		w.t.Errorf("changing a template: %v", err)
	}
	template.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	if err := w.Update(w.t.Context(), template, client.DryRunAll); err != nil {
		w.t.Errorf("changing a template as the topology controller does in a dry run: %v", err)
	}
}

// scale changes the number of workers.
func (w *world) scale(replicas int) {
	w.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := w.Patch(w.t.Context(), &clusterv1.MachineDeployment{ObjectMeta: w.meta("demo-md-0")}, patch); err != nil {
		w.t.Fatal(err)
	}
}

// claims maps the Hosts that are claimed to the Machines.
func (w *world) claims() map[string]string {
	w.t.Helper()
	hosts := &hostsv1.HostList{}
	if err := w.List(w.t.Context(), hosts, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	claims := map[string]string{}
	for _, host := range hosts.Items {
		if host.Spec.Claim != nil {
			claims[host.Name] = host.Spec.Claim.Machine
		}
	}
	return claims
}

// eventuallyRunning waits until there are just so many Machines, all of them Running, and a ready Node on the Host of each.
func (w *world) eventuallyRunning(want int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d Machines to run", want), func() error {
		machines, nodes := &clusterv1.MachineList{}, &corev1.NodeList{}
		if err := errors.Join(w.List(w.t.Context(), machines, client.InNamespace(w.namespace)), w.workload.List(w.t.Context(), nodes)); err != nil {
			return err
		}
		byHost := map[string]string{} // Nodes by their Hosts
		for _, node := range nodes.Items {
			byHost[strings.TrimPrefix(node.Spec.ProviderID, "hosts://"+w.namespace+"/")] = node.Name
		}
		running := map[string]string{}
		var notes []string
		for _, m := range machines.Items {
			hm := &hostsv1.HostMachine{}
			if err := w.Get(w.t.Context(), w.key(m.Spec.InfrastructureRef.Name), hm); err != nil || hm.Spec.Host == nil {
				return fmt.Errorf("HostMachine of Machine %s: %+v, %w", m.Name, hm, err)
			}
			if m.Status.Phase == "Running" && m.Status.NodeRef.IsDefined() {
				running[hm.Spec.Host.Name] = m.Status.NodeRef.Name
			}
			notes = append(notes, fmt.Sprintf("%s is %s: %v", m.Name, m.Status.Phase, m.GetV1Beta1Conditions()))
		}
		if diff := cmp.Diff(byHost, running); diff != "" || len(running) != want {
			return fmt.Errorf("Nodes and running Machines by Host (-Nodes +Machines):\n%s%s", diff, strings.Join(notes, "\n"))
		}
		return nil
	})
}

// clean checks that nothing of a claim is left on a Host.
func (w *world) clean(name string) {
	w.t.Helper()
	for _, path := range []string{sshtest.State + "/claim", sshtest.State + "/bootstrap.log", "etc/kubernetes/pki/ca.crt", "run/cluster-api/bootstrap-success.complete", "run/kubeadm/kubeadm-join-config.yaml"} {
		if content := w.servers[name].Read(w.t, path); content != "" {
			w.t.Errorf("Host %s still has %s", name, path)
		}
	}
}

func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, what, check)
}
