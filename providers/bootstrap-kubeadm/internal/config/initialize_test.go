package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestGates(t *testing.T) {
	waiting := func(reason string) map[clusterv1.ConditionType]string {
		return map[clusterv1.ConditionType]string{clusterv1.ReadyV1Beta1Condition: "False Info " + reason, bootstrapv1.DataSecretAvailableV1Beta1Condition: "False Info " + reason}
	}
	bare := newCluster()
	bare.Status.Initialization.InfrastructureProvisioned = ptr.To(false)
	paused := newCluster()
	object.Paused(paused)
	tests := []struct {
		reason  string
		cluster *clusterv1.Cluster
		machine *clusterv1.Machine
		spec    bootstrapv1.KubeadmConfigSpec
		others  []client.Object
		want    map[clusterv1.ConditionType]string
		again   time.Duration
	}{
		{reason: "no infrastructure", cluster: bare, machine: newMachine("m", true), spec: clusterSpec(), want: waiting(bootstrapv1.WaitingForClusterInfrastructureV1Beta1Reason)},
		{reason: "a worker waits for the control plane", cluster: newCluster(), machine: newMachine("m", false), want: waiting(bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason)},
		{reason: "so does a control plane machine that can only join", cluster: newCluster(), machine: newMachine("m", true), want: waiting(bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason)},
		{
			reason: "and one for which the lock is taken, which is requeued", cluster: newCluster(), machine: newMachine("m", true), spec: clusterSpec(),
			others: []client.Object{lockHeld(`{"machineName":"other"}`), newMachine("other", true)}, want: waiting(bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason), again: 30 * time.Second,
		},
		{reason: "a paused cluster is not reconciled", cluster: paused, machine: newMachine("m", true), spec: clusterSpec(), want: map[clusterv1.ConditionType]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.others, tt.cluster, tt.machine, newConfig("m", tt.spec))...)
			result := w.mustReconcile(t, "m")
			if diff := cmp.Diff(tt.want, states(w.config(t, "m"))); diff != "" {
				t.Errorf("conditions, -want +got:\n%s", diff)
			}
			if result.RequeueAfter != tt.again || len(w.created(t)) != 0 {
				t.Errorf("again after %v, want %v; created %q, want nothing", result.RequeueAfter, tt.again, w.created(t))
			}
		})
	}
}

func TestWithoutOwnerNothingHappens(t *testing.T) {
	orphan := newConfig("m", clusterSpec())
	orphan.OwnerReferences = nil
	for reason, objects := range map[string][]client.Object{
		"no owner":   {orphan, newCluster(), newMachine("m", true)},
		"no Machine": {newConfig("m", clusterSpec()), newCluster()},
		"no Cluster": {newConfig("m", clusterSpec()), newMachine("m", true)},
	} {
		w := newWorld(t, objects...)
		result := w.mustReconcile(t, "m")
		if config := w.config(t, "m"); len(config.GetV1Beta1Conditions()) != 0 || len(w.created(t)) != 0 || result.RequeueAfter != 0 {
			t.Errorf("%s: conditions %v, created %q, again after %s; want none", reason, config.GetV1Beta1Conditions(), w.created(t), result.RequeueAfter)
		}
	}
}

// TestDataDoesNotDependOnInfrastructure lets the infrastructure of a cluster no longer be ready after data was generated, as a manager
// with an older state of the cluster may report for a moment.
func TestDataDoesNotDependOnInfrastructure(t *testing.T) {
	cluster := newCluster()
	w := newWorld(t, cluster, newMachine("m", true), newConfig("m", clusterSpec()))
	w.mustReconcile(t, "m")
	want := states(w.config(t, "m"))
	for _, ready := range []bool{false, true} {
		get(t, w, cluster.Name, cluster)
		cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(ready)
		testenv.Must(t, w.Status().Update(t.Context(), cluster))
		w.mustReconcile(t, "m")
		if diff := cmp.Diff(want, states(w.config(t, "m"))); diff != "" {
			t.Errorf("infrastructure ready %t: conditions, -want +got:\n%s", ready, diff)
		}
	}
}

func TestInitialize(t *testing.T) {
	w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()))
	w.mustReconcile(t, "m")

	config := w.config(t, "m")
	if !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || config.Status.DataSecretName != "m" {
		t.Errorf("status = %+v, want ready with the data's name", config.Status)
	}
	all := map[clusterv1.ConditionType]string{clusterv1.ReadyV1Beta1Condition: "True", bootstrapv1.DataSecretAvailableV1Beta1Condition: "True", bootstrapv1.CertificatesAvailableV1Beta1Condition: "True"}
	if diff := cmp.Diff(all, states(config)); diff != "" {
		t.Errorf("conditions, -want +got:\n%s", diff)
	}
	secret := get(t, w, "m", &corev1.Secret{})
	if secret.Type != clusterv1.ClusterSecretType || string(secret.Data["format"]) != "cloud-config" || secret.Labels[clusterv1.ClusterNameLabel] != "test" ||
		!metav1.IsControlledBy(secret, config) {
		t.Errorf("the Secret has the documented form: %+v, format %q", secret.ObjectMeta, secret.Data["format"])
	}
	d := w.document(t, "m")
	paths := []string{
		"/etc/kubernetes/pki/ca.crt 0640 root:root", "/etc/kubernetes/pki/ca.key 0600 root:root",
		"/etc/kubernetes/pki/etcd/ca.crt 0640 root:root", "/etc/kubernetes/pki/etcd/ca.key 0600 root:root",
		"/etc/kubernetes/pki/front-proxy-ca.crt 0640 root:root", "/etc/kubernetes/pki/front-proxy-ca.key 0600 root:root",
		"/etc/kubernetes/pki/sa.pub 0640 root:root", "/etc/kubernetes/pki/sa.key 0600 root:root",
		"/run/kubeadm/kubeadm.yaml 0640 root:root", "/run/cluster-api/placeholder 0640 root:root",
	}
	if diff := cmp.Diff(paths, d.paths()); diff != "" {
		t.Errorf("files, -want +got:\n%s", diff)
	}
	for _, line := range []string{"clusterName: test", "controlPlaneEndpoint: 10.0.0.1:6443", "dnsDomain: example.local", "serviceSubnet: 10.128.0.0/12",
		"podSubnet: 192.168.0.0/16,fd00::/48", "kubernetesVersion: v1.31.0", "kind: InitConfiguration", "apiVersion: kubeadm.k8s.io/v1beta4",
		"encryptionAlgorithm: ECDSA-P256"} {
		if !strings.Contains(d.file("/run/kubeadm/kubeadm.yaml"), line+"\n") {
			t.Errorf("kubeadm's configuration lacks %q:\n%s", line, d.file("/run/kubeadm/kubeadm.yaml"))
		}
	}
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		owned := get(t, w, pki.SecretName("test", purpose), &corev1.Secret{})
		if !metav1.IsControlledBy(owned, config) {
			t.Errorf("without a control plane object, Secret %s belongs to the first machine's config", owned.Name)
		}
	}
}

func TestUserWinsOverCluster(t *testing.T) {
	// Clients of v1beta2 can set the endpoint only.
	config := olderConfig(t, "m", bootstrapv1beta1.KubeadmConfigSpec{ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{
		ClusterName: "mine", ControlPlaneEndpoint: "api.example.com:443", KubernetesVersion: "v1.21.0",
		Networking: bootstrapv1beta1.Networking{DNSDomain: "my.domain", PodSubnet: "10.1.0.0/16", ServiceSubnet: "10.2.0.0/16"},
	}})
	before := config.DeepCopy()
	w := newWorld(t, newCluster(), newMachine("m", true), config)
	w.mustReconcile(t, "m")
	kubeadm := w.document(t, "m").file("/run/kubeadm/kubeadm.yaml")
	for _, line := range []string{"clusterName: mine", "controlPlaneEndpoint: api.example.com:443", "dnsDomain: my.domain", "serviceSubnet: 10.2.0.0/16",
		"podSubnet: 10.1.0.0/16", "kubernetesVersion: v1.21.0", "apiVersion: kubeadm.k8s.io/v1beta2"} {
		if !strings.Contains(kubeadm, line+"\n") {
			t.Errorf("the user's values must not be overridden, %q is missing:\n%s", line, kubeadm)
		}
	}
	after := w.config(t, "m")
	if diff := cmp.Diff(before.Spec, after.Spec) + cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("completing never changes the spec, -want +got:\n%s", diff)
	}
}

func TestCrashBetweenSecretAndStatus(t *testing.T) {
	w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()))
	w.Before = func(r fakeapi.Request) error {
		if r.Subresource == "status" {
			return errors.New("the process died here")
		}
		return nil
	}
	if _, err := w.reconcile(t, "m"); err == nil {
		t.Fatal("the write of status fails")
	}
	before := get(t, w, "m", &corev1.Secret{})
	count := len(w.created(t))
	w.Before = nil
	w.restart()
	w.mustReconcile(t, "m")
	if diff := cmp.Diff(before, get(t, w, "m", &corev1.Secret{})); diff != "" {
		t.Errorf("data is generated once, -want +got:\n%s", diff)
	}
	if config := w.config(t, "m"); !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || config.Status.DataSecretName != "m" || len(w.created(t)) != count {
		t.Errorf("status = %+v, created %q; want it ready without anything more", config.Status, w.created(t)[count:])
	}
}

func TestAdopt(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "test"}}}
	unseen := foreign.DeepCopy()
	unseen.Labels = nil
	left, unseenLeft := foreign.DeepCopy(), unseen.DeepCopy()
	for _, secret := range []*corev1.Secret{left, unseenLeft} {
		secret.UID = "old"
		secret.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig", Name: "m", UID: "gone", Controller: ptr.To(true)},
		}
	}
	other := left.DeepCopy()
	other.OwnerReferences[0].Name = "n"
	supplied := newMachine("m", true)
	supplied.Spec.Bootstrap.DataSecretName = ptr.To("provided")
	tests := []struct {
		reason  string
		objects []client.Object
		want    string
		// message is why the data is not available; it is retried, but not immediately.
		message string
	}{
		{reason: "data that was created with the Machine", objects: []client.Object{supplied}, want: "provided"},
		{reason: "a Secret of another owner has the name", objects: []client.Object{newMachine("m", true), foreign}, message: "does not belong to this KubeadmConfig"},
		{reason: "and so is that of another config", objects: []client.Object{newMachine("m", true), other}, message: "does not belong to this KubeadmConfig"},
		{reason: "what a predecessor of that name left behind goes", objects: []client.Object{newMachine("m", true), left}, want: "m"},
		{reason: "also if the cache does not have it", objects: []client.Object{newMachine("m", true), unseenLeft}, want: "m"},
		{reason: "also one that the cache does not have", objects: []client.Object{newMachine("m", true), unseen}, message: "does not belong to this KubeadmConfig"},
		{reason: "what a finalizer keeps is waited for", objects: []client.Object{newMachine("m", true), kept(left)}, message: "it is being deleted, but has a finalizer"},
		{reason: "also if the cache does not have it", objects: []client.Object{newMachine("m", true), kept(unseenLeft)}, message: "it is being deleted, but has a finalizer"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.objects, newCluster(), newConfig("m", clusterSpec()))...)
			for range 2 {
				result := w.mustReconcile(t, "m")
				if want := tt.message != ""; (result.RequeueAfter == backstop) != want {
					t.Errorf("again after %s, want the backstop: %t", result.RequeueAfter, want)
				}
			}
			if got := w.config(t, "m").Status.DataSecretName; got != tt.want {
				t.Errorf("data secret = %q, want %q", got, tt.want)
			}
			available := condition.Get(w.config(t, "m"), bootstrapv1.DataSecretAvailableV1Beta1Condition)
			if available == nil || !strings.Contains(available.Message, tt.message) || (available.Reason == bootstrapv1.DataSecretGenerationFailedV1Beta1Reason) != (tt.message != "") {
				t.Errorf("DataSecretAvailable is %+v, want %q", available, tt.message)
			}
		})
	}
}

// kept is an object that is being deleted and has a finalizer.
func kept(secret *corev1.Secret) *corev1.Secret {
	secret = secret.DeepCopy()
	secret.Finalizers = []string{"example.com/kept"}
	return secret
}

func TestTheDataOfASuccessorIsLeftAlone(t *testing.T) {
	w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()))
	w.Cache.FreezeObjects(newConfig("m", clusterSpec()))
	w.Cache.FreezeObjects(newMachine("m", true))
	testenv.Must(t, w.Delete(t.Context(), newConfig("m", clusterSpec())))
	successor := newConfig("m", clusterSpec())
	successor.UID = "successor"
	made := dataSecret(&scope{config: successor, cluster: newCluster()}, []byte("x"))
	made.UID = "made"
	testenv.Must(t, w.Client.Create(t.Context(), successor), w.Client.Create(t.Context(), made))
	for _, known := range []bool{true, false} {
		if !known {
			w.Cache.Hide(made)
		}
		// If it fails, then because its own status cannot be written: that object was deleted.
		if _, err := w.reconcile(t, "m"); err != nil {
			t.Log(err)
		}
		if got := get(t, w, "m", &corev1.Secret{}); string(got.Data["value"]) != "x" {
			t.Errorf("the cache knows of it: %t; a controller with an old copy of the config replaced the data of the new one", known)
		}
	}
}

func TestAMachineOfAnotherUIDIsNotTheOwner(t *testing.T) {
	machine := newMachine("m", true)
	machine.UID = "another"
	w := newWorld(t, newCluster(), machine, newConfig("m", clusterSpec()))
	if result := w.mustReconcile(t, "m"); result.RequeueAfter != backstop || len(w.created(t)) != 0 {
		t.Errorf("again after %s, created %q; want the backstop and nothing", result.RequeueAfter, w.created(t))
	}
}

func TestTwoMachinesOneInitializes(t *testing.T) {
	w := newWorld(t, newCluster(), newMachine("a", true), newMachine("b", true), newConfig("a", clusterSpec()), newConfig("b", clusterSpec()))
	w.mustReconcile(t, "a")
	w.mustReconcile(t, "b")
	if !ptr.Deref(w.config(t, "a").Status.Initialization.DataSecretCreated, false) || ptr.Deref(w.config(t, "b").Status.Initialization.DataSecretCreated, false) {
		t.Fatal("one of two Machines initializes, the first")
	}
	testenv.Must(t, w.Delete(t.Context(), newMachine("a", true)))
	w.mustReconcile(t, "b")
	if ptr.Deref(w.config(t, "b").Status.Initialization.DataSecretCreated, false) {
		t.Error("a lock whose holder does not exist is released first, and acquired the next time")
	}
	w.mustReconcile(t, "b")
	if !ptr.Deref(w.config(t, "b").Status.Initialization.DataSecretCreated, false) {
		t.Error("the other Machine must initialize once the first is deleted")
	}
}

func TestLockIsReleasedOnceInitialized(t *testing.T) {
	for reason, spec := range map[string]bootstrapv1.KubeadmConfigSpec{
		"by cluster configuration": clusterSpec(),
		"by init configuration":    {InitConfiguration: bootstrapv1.InitConfiguration{SkipPhases: []string{"addon/kube-proxy"}}},
	} {
		w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", spec))
		w.mustReconcile(t, "m")
		get(t, w, "test-lock", &corev1.ConfigMap{})
		cluster := get(t, w, "test", &clusterv1.Cluster{})
		testenv.Must(t, w.Status().Update(t.Context(), initialized(cluster)))
		w.mustReconcile(t, "m")
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "test-lock"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the lock is still there: %v", reason, err)
		}
	}
}

func TestExternalEtcdOfTheFirstMachine(t *testing.T) {
	spec := clusterSpec()
	spec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd:2379"}, CAFile: "/etc/kubernetes/pki/etcd/ca.crt",
		CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key"}
	etcdFiles := func(d document) []string {
		return slices.DeleteFunc(d.paths(), func(p string) bool { return !strings.Contains(p, "etcd") })
	}
	want := []string{"/etc/kubernetes/pki/etcd/ca.crt 0640 root:root", "/etc/kubernetes/pki/apiserver-etcd-client.crt 0640 root:root", "/etc/kubernetes/pki/apiserver-etcd-client.key 0600 root:root"}
	tests := []struct {
		reason  string
		objects []client.Object
		err     string
	}{
		{reason: "the user provides CA and client certificate", objects: []client.Object{secretOf(pki.EtcdCA, false), secretOf(pki.APIServerEtcdClient, true)}},
		{reason: "the CA's key, if it exists, is not distributed", objects: []client.Object{secretOf(pki.EtcdCA, true), secretOf(pki.APIServerEtcdClient, true)}},
		{reason: "the CA is never generated", objects: []client.Object{secretOf(pki.APIServerEtcdClient, true)}, err: "test-etcd does not exist"},
		{reason: "nor is the client certificate", objects: []client.Object{secretOf(pki.EtcdCA, false)}, err: "test-apiserver-etcd-client does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.objects, newCluster(), newMachine("m", true), newConfig("m", spec))...)
			_, err := w.reconcile(t, "m")
			if tt.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, etcdFiles(w.document(t, "m"))); diff != "" {
					t.Errorf("files of etcd, -want +got:\n%s", diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("err = %v, want one that contains %q", err, tt.err)
			}
			if got := states(w.config(t, "m"))[bootstrapv1.CertificatesAvailableV1Beta1Condition]; got != "False Warning CertificatesGenerationFailed" {
				t.Errorf("CertificatesAvailable is %q", got)
			}
		})
	}
}

func TestKeysAreOfTheChosenAlgorithm(t *testing.T) {
	tests := []struct {
		reason string
		choice string
		want   string
		err    string
	}{
		{reason: "no algorithm is chosen", want: "-----BEGIN EC PRIVATE KEY-----"},
		{reason: "the Cluster does", choice: "RSA-2048", want: "-----BEGIN RSA PRIVATE KEY-----"},
		{reason: "the choice is invalid", choice: "RSA", err: "annotation cluster.x-k8s.io/key-algorithm of Cluster default/test: unknown key algorithm: use one of ECDSA-P256"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			cluster := newCluster()
			if tt.choice != "" {
				cluster.Annotations = map[string]string{pki.AlgorithmAnnotation: tt.choice}
			}
			w := newWorld(t, cluster, newMachine("m", true), newConfig("m", clusterSpec()))
			_, err := w.reconcile(t, "m")
			if tt.err != "" {
				available := condition.Get(w.config(t, "m"), bootstrapv1.CertificatesAvailableV1Beta1Condition)
				if err == nil || available == nil || available.Reason != bootstrapv1.CertificatesGenerationFailedV1Beta1Reason || !strings.HasPrefix(available.Message, tt.err) {
					t.Errorf("error %v, CertificatesAvailable %+v, want %q", err, available, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/etcd/ca.key", "/etc/kubernetes/pki/front-proxy-ca.key", "/etc/kubernetes/pki/sa.key"} {
				if key := w.document(t, "m").file(path); !strings.HasPrefix(key, tt.want) {
					t.Errorf("%s is another kind of key, want %s", path, tt.want)
				}
			}
		})
	}
}
