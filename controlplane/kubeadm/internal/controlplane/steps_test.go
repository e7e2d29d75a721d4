package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is one scope over a fake API server that notes writes.
type bench struct {
	*Controller
	*scope
	writes []string
	// live is the control plane as the API server has it, if that is not what the scope has.
	live *controlplanev1.KubeadmControlPlane
	// liveCluster is the Cluster as the API server has it, if that is not what the scope has.
	liveCluster *clusterv1.Cluster
	// statusWrites counts writes of Machines' status.
	statusWrites int
	// liveReads counts reads past the cache.
	liveReads int
}

// take takes the steps of these names in order.
func (b *bench) take(ctx context.Context, names ...string) (step.Result, error) {
	declared := b.declared()
	var steps []step.Step[*scope]
	for _, name := range names {
		steps = append(steps, declared.Step(name))
	}
	return step.Try(ctx, b.kcp, b.scope, steps...)
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{}
	note := func(verb string, obj client.Object) { b.writes = append(b.writes, verb+" "+obj.GetName()) }
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}, &controlplanev1.KubeadmControlPlane{}).
		WithIndex(&clusterv1.Machine{}, ClusterIndex, ByCluster).WithIndex(&clusterv1.MachinePool{}, ClusterIndex, ByCluster).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				note("create", obj)
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				note("patch", obj)
				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				b.statusWrites++
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			},
		}).Build()
	live := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			b.liveReads++
			switch o := obj.(type) {
			case *controlplanev1.KubeadmControlPlane:
				cmp.Or(b.live, b.kcp).DeepCopyInto(o)
				return nil
			case *clusterv1.Cluster:
				cmp.Or(b.liveCluster, b.cluster).DeepCopyInto(o)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			b.liveReads++
			return c.List(ctx, list, opts...)
		},
	})
	b.Controller = &Controller{
		Outside: step.Outside{Client: c, Live: live, Clock: testclock.NewFakePassiveClock(now)},
		Secrets: c, External: external.Reader{Client: c, Versions: contract.APIVersions{Reader: c}},
	}
	b.scope = &scope{
		kcp: &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}},
		cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 1}},
		},
	}
	b.kcp.Spec.Version = "v1.30.0"
	return b
}

func (b *bench) secret(t *testing.T, p pki.Purpose) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := b.Client.Get(t.Context(), pki.SecretKey(b.key(), p), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func userSecret(p pki.Purpose, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pki.SecretName("c", p)}, Data: data}
}

func TestCertificatesOfUsersStayAsTheyAre(t *testing.T) {
	mine := userSecret(pki.ClusterCA, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	b := newBench(t, mine)
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	if got := b.secret(t, pki.ClusterCA); len(got.OwnerReferences) != 0 || string(got.Data["tls.crt"]) != "x" {
		t.Errorf("the user's Secret was changed: %+v", got)
	}
	if want := []string{"create c-etcd", "create c-proxy", "create c-sa"}; !slices.Equal(want, b.writes) {
		t.Errorf("writes %q, want %q", b.writes, want)
	}
	b.writes = nil
	if _, err := b.take(t.Context(), "certificates"); err != nil || len(b.writes) != 0 {
		t.Errorf("the second time it writes %q, error %v", b.writes, err)
	}
}

// labelled is a cache of Secrets: it has those of a cluster alone.
type labelled struct{ client.Reader }

func (l labelled) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if err := l.Reader.Get(ctx, key, obj, o...); err != nil {
		return err
	}
	if _, ok := obj.GetLabels()[clusterv1.ClusterNameLabel]; !ok {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return nil
}

// What users bring without the label that caching goes by would be found by some and not by others.
func TestCertificatesOfUsersGetTheLabelOfTheCluster(t *testing.T) {
	data := map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")}
	external := &bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: &bootstrapv1.ExternalEtcd{}}}
	for purpose, config := range map[pki.Purpose]*bootstrapv1.ClusterConfiguration{pki.EtcdCA: nil, pki.APIServerEtcdClient: external} {
		b := newBench(t, userSecret(purpose, data))
		b.Secrets = labelled{b.Client}
		b.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = config
		if config != nil {
			if err := b.Client.Create(t.Context(), userSecret(pki.EtcdCA, data)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		got := b.secret(t, purpose)
		if got.Labels[clusterv1.ClusterNameLabel] != "c" || len(got.OwnerReferences) != 0 || !maps.EqualFunc(data, got.Data, bytes.Equal) {
			t.Errorf("secret %s became %+v", purpose, got)
		}
		b.writes = nil
		if _, err := b.take(t.Context(), "certificates"); err != nil || len(b.writes) != 0 {
			t.Errorf("secret %s: the second time it writes %q, error %v", purpose, b.writes, err)
		}
	}
}

// New Machines of a cluster that runs, or comes up, cannot have another authority than the old ones.
func TestCertificatesOfAClusterThatRuns(t *testing.T) {
	for reason, begun := range map[string]func(*bench){
		"the control plane knows that it runs": func(b *bench) { b.kcp.Status.Initialized = true },
		"the Cluster knows that it runs": func(b *bench) {
			condition.Set(b.cluster, condition.True(clusterv1.ControlPlaneInitializedCondition))
		},
		"a Machine comes up with what was there": func(b *bench) {
			b.machines = []*machine{{Machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("m")}}}}}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			b := newBench(t)
			if _, err := b.take(t.Context(), "certificates"); err != nil {
				t.Fatal(err)
			}
			begun(b)
			if err := b.Client.Delete(t.Context(), b.secret(t, pki.FrontProxyCA)); err != nil {
				t.Fatal(err)
			}
			b.writes = nil
			if _, err := b.take(t.Context(), "certificates"); err == nil || !strings.Contains(err.Error(), "c-proxy: it does not exist") || len(b.writes) != 0 {
				t.Errorf("error %v, writes %q: a lost authority must be restored", err, b.writes)
			}
			if c := condition.Get(b.kcp, controlplanev1.CertificatesAvailableCondition); c.Reason != controlplanev1.CertificatesGenerationFailedReason {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestCertificatesOfAnExternalEtcd(t *testing.T) {
	external := &bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: &bootstrapv1.ExternalEtcd{}}}
	client := userSecret(pki.APIServerEtcdClient, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	b := newBench(t, client)
	b.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = external
	if _, err := b.take(t.Context(), "certificates"); err == nil || !strings.Contains(err.Error(), "create it before the cluster") {
		t.Errorf("without the Secret of etcd's authority the error is %v", err)
	}
	if c := condition.Get(b.kcp, controlplanev1.CertificatesAvailableCondition); c == nil || c.Reason != controlplanev1.CertificatesGenerationFailedReason {
		t.Errorf("condition %+v", c)
	}
	b = newBench(t, client, userSecret(pki.EtcdCA, map[string][]byte{"tls.crt": []byte("x")}))
	b.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = external
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Errorf("the authority of an external etcd needs no key: %v", err)
	}
}

func TestCertificatesOfTheFirstMachineAreTakenOver(t *testing.T) {
	made := userSecret(pki.ClusterCA, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	made.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig", Name: "m", UID: "m-uid", Controller: ptr.To(true),
	}}
	b := newBench(t, made)
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	if got := b.secret(t, pki.ClusterCA); len(got.OwnerReferences) != 1 || !metav1.IsControlledBy(got, b.kcp) {
		t.Errorf("owners %+v", got.OwnerReferences)
	}
}

func TestKubeconfigIsRenewedInTime(t *testing.T) {
	b := newBench(t)
	steps := func() string {
		t.Helper()
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.kubeconfig(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		return string(b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey])
	}
	first := steps()
	if !strings.Contains(first, "https://h:1") {
		t.Errorf("the kubeconfig names another server: %s", strings.Split(first, "\n")[4])
	}
	b.Clock = testclock.NewFakePassiveClock(now.Add(180 * 24 * time.Hour))
	if second := steps(); first != second {
		t.Error("it is made anew although more than half a year is left")
	}
	b.Clock = testclock.NewFakePassiveClock(now.Add(190 * 24 * time.Hour))
	if third := steps(); first == third {
		t.Error("it is not made anew although less than half a year is left")
	}
}

// Whoever replaces the certificate authority needs a kubeconfig that the new one signed, and that trusts it.
func TestKubeconfigFollowsTheAuthority(t *testing.T) {
	authority := func(names ...string) map[string][]byte {
		t.Helper()
		var pair pki.Pair
		for range names {
			a, err := pki.NewCA("", now)
			if err != nil {
				t.Fatal(err)
			}
			made, err := a.PEM()
			if err != nil {
				t.Fatal(err)
			}
			pair.Certificate, pair.Key = append(made.Certificate, pair.Certificate...), made.Key
		}
		return pair.Data()
	}
	both := authority("old", "new")
	cases := []struct {
		reason  string
		ca      func(before map[string][]byte) map[string][]byte
		users   bool // the kubeconfig is the user's
		renewed bool
	}{
		{reason: "nothing has changed", ca: func(before map[string][]byte) map[string][]byte { return before }},
		{reason: "another authority", ca: func(map[string][]byte) map[string][]byte { return authority("new") }, renewed: true},
		{reason: "an authority and the one before it", ca: func(map[string][]byte) map[string][]byte { return both }, renewed: true},
		{reason: "another one is trusted besides", renewed: true, ca: func(before map[string][]byte) map[string][]byte {
			return map[string][]byte{pki.CertificateKey: append(bytes.Clone(before[pki.CertificateKey]), authority("new")[pki.CertificateKey]...), pki.PrivateKeyKey: before[pki.PrivateKeyKey]}
		}},
		{reason: "users look after their own", users: true, ca: func(map[string][]byte) map[string][]byte { return authority("new") }},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			read := func() string {
				t.Helper()
				if _, err := b.kubeconfig(t.Context(), b.scope); err != nil {
					t.Fatal(err)
				}
				return string(b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey])
			}
			if _, err := b.take(t.Context(), "certificates"); err != nil {
				t.Fatal(err)
			}
			before := read()
			if tc.users {
				theirs := b.secret(t, pki.Kubeconfig)
				theirs.OwnerReferences = nil
				if err := b.Client.Update(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
			}
			ca := b.secret(t, pki.ClusterCA)
			ca.Data = tc.ca(ca.Data)
			if err := b.Client.Update(t.Context(), ca); err != nil {
				t.Fatal(err)
			}
			after := read()
			if (before != after) != tc.renewed {
				t.Errorf("it was renewed: %t, want %t", before != after, tc.renewed)
			}
			config, err := clientcmd.Load([]byte(after))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Clusters["c"].CertificateAuthorityData; tc.renewed && !bytes.Equal(got, ca.Data[pki.CertificateKey]) {
				t.Errorf("it trusts %s", got)
			}
			if b.writes = nil; read() != after || len(b.writes) > 0 {
				t.Error("it is renewed again and again")
			}
		})
	}
}

// An authority that nothing it signs can be verified with must not cause a write at each reconcile.
func TestKubeconfigOfAnUnusableAuthority(t *testing.T) {
	b := newBench(t)
	for range 2 {
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.kubeconfig(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		ca := b.secret(t, pki.ClusterCA)
		a, err := pki.CAFrom(ca)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := a.Issue(pki.Request{CommonName: "no authority", Validity: time.Hour}, now)
		if err != nil {
			t.Fatal(err)
		}
		ca.Data = pair.Data()
		if err := b.Client.Update(t.Context(), ca); err != nil {
			t.Fatal(err)
		}
		b.writes = nil
	}
	for range 2 {
		_, _ = b.kubeconfig(t.Context(), b.scope)
	}
	if len(b.writes) > 0 {
		t.Errorf("writes %q, want none: they would not help", b.writes)
	}
}

func TestTheKubeconfigOfAUserGetsTheLabelOfTheCluster(t *testing.T) {
	b := newBench(t, userSecret(pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: []byte("mine")}))
	b.Secrets = labelled{b.Client}
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"create c-kubeconfig, patch c-kubeconfig", ""} {
		b.writes = nil
		if _, err := b.kubeconfig(t.Context(), b.scope); err != nil || strings.Join(b.writes, ", ") != want {
			t.Errorf("writes %q, error %v, want %q", b.writes, err, want)
		}
	}
	if got := b.secret(t, pki.Kubeconfig); string(got.Data[pki.KubeconfigKey]) != "mine" || len(got.OwnerReferences) != 0 {
		t.Errorf("the user's kubeconfig was changed: %+v", got.ObjectMeta)
	}
}

func TestAdopt(t *testing.T) {
	machine := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: clusterv1.MachineSpec{Version: &version}}
	}
	for version, want := range map[string]bool{"v1.29.9": true, "v1.30.1": true, "v1.31.0": true, "v1.28.0": false, "v1.32.0": false, "v2.30.0": false} {
		m := machine(version)
		b := newBench(t, m)
		b.orphans = []*clusterv1.Machine{m}
		_, err := b.adopt(t.Context(), b.scope)
		live := &clusterv1.Machine{}
		if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), live); err != nil {
			t.Fatal(err)
		}
		if got := metav1.IsControlledBy(live, b.kcp); got != want || (err == nil) != want {
			t.Errorf("version %s: adopted %t, error %v, want %t", version, got, err, want)
		}
	}
}

func TestConditionsMeetANewerMachine(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	b := newBench(t, m)
	read := &clusterv1.Machine{}
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), read); err != nil {
		t.Fatal(err)
	}
	newer := read.DeepCopy()
	condition.Set(newer, condition.True(clusterv1.InfrastructureReadyCondition))
	if err := b.Client.Status().Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	before := read.Status.Conditions.DeepCopy()
	condition.Set(read, condition.True(controlplanev1.MachineEtcdPodHealthyCondition))
	if err := b.SaveConditions(t.Context(), read, before); err != nil {
		t.Fatal(err)
	}
	live := &clusterv1.Machine{}
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), live); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []clusterv1.ConditionType{clusterv1.InfrastructureReadyCondition, controlplanev1.MachineEtcdPodHealthyCondition} {
		if !condition.IsTrue(live, kind) {
			t.Errorf("condition %s is lost: %+v", kind, live.Status.Conditions)
		}
	}
}

// A process that ended after it created a Machine is continued, and names do not depend on chance.
func TestAnInterruptedCreationIsContinued(t *testing.T) {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "m", UID: "m-uid",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "cp", UID: "cp-uid", Controller: ptr.To(true)}},
		},
		Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{Kind: "KubeadmConfig", Name: "m"}}},
	}
	m.Spec.InfrastructureRef.Name = "not ours to make"
	b := newBench(t, m)
	b.machines = []*machine{{Machine: m}}
	if _, err := b.complete(t.Context(), b.scope); err != nil {
		t.Fatal(err)
	}
	config := &bootstrapv1.KubeadmConfig{}
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), config); err != nil || !metav1.IsControlledBy(config, m) {
		t.Errorf("KubeadmConfig %+v, error %v", config.ObjectMeta, err)
	}
	again := newBench(t, m, config)
	again.machines = []*machine{{Machine: m}}
	if _, err := again.complete(t.Context(), again.scope); err != nil {
		t.Errorf("a KubeadmConfig that the cache does not show yet is an error: %v", err)
	}
	foreign := config.DeepCopy()
	foreign.ResourceVersion, foreign.OwnerReferences = "", nil
	again = newBench(t, m, foreign)
	again.machines = []*machine{{Machine: m}}
	if _, err := again.complete(t.Context(), again.scope); err == nil {
		t.Error("a KubeadmConfig of somebody else is taken for ours")
	}
}

// The first Machine initialises the cluster, also if nothing says how; all others join, and never initialise.
func TestWhatMachinesAreBootstrappedWith(t *testing.T) {
	full := bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: &bootstrapv1.ClusterConfiguration{}, InitConfiguration: &bootstrapv1.InitConfiguration{}, JoinConfiguration: &bootstrapv1.JoinConfiguration{},
	}
	for _, test := range []struct {
		reason string
		spec   bootstrapv1.KubeadmConfigSpec
		begun  bool
		want   []bool // sections: cluster, init, join
	}{
		{"all sections, first", full, false, []bool{true, true, false}},
		{"all sections, joining", full, true, []bool{false, false, true}},
		{"no sections, first", bootstrapv1.KubeadmConfigSpec{}, false, []bool{false, true, false}},
		{"no sections, joining", bootstrapv1.KubeadmConfigSpec{}, true, []bool{false, false, false}},
		{"cluster alone says enough", bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: full.ClusterConfiguration}, false, []bool{true, false, false}},
		{"join alone says nothing to the first", bootstrapv1.KubeadmConfigSpec{JoinConfiguration: full.JoinConfiguration}, false, []bool{false, true, false}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t)
			b.kcp.Spec.KubeadmConfigSpec, b.kcp.Status.Initialized = test.spec, test.begun
			m := &machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}, Spec: clusterv1.MachineSpec{Version: &b.kcp.Spec.Version}}}
			b.machines = []*machine{m}
			if err := b.createConfig(t.Context(), b.scope, m); err != nil {
				t.Fatal(err)
			}
			made := m.config.Spec
			got := []bool{made.ClusterConfiguration != nil, made.InitConfiguration != nil, made.JoinConfiguration != nil}
			if !slices.Equal(test.want, got) {
				t.Errorf("cluster, init and join are there: %t, want %t", got, test.want)
			}
			m.compare(b.kcp, b.Clock)
			if len(m.outdated) > 0 {
				t.Errorf("the Machine is outdated from the start: %q", m.outdated)
			}
		})
	}
}

func TestMachineNames(t *testing.T) {
	b := newBench(t)
	first := b.machineName()
	if again := b.machineName(); first != again {
		t.Errorf("one view gives two names, %s and %s", first, again)
	}
	b.machines = []*machine{{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}}
	second := b.machineName()
	b.machines[0].UID = "b"
	third := b.machineName()
	if first == second || second == third || !strings.HasPrefix(first, "cp-") || len(first) != len("cp-")+5 {
		t.Errorf("names %s, %s, %s", first, second, third)
	}
}

func TestALostWorkloadClusterIsStatedLate(t *testing.T) {
	b := newBench(t)
	b.Workloads = unreachableWorkloads{}
	b.kcp.Status.Initialized = true
	b.machines = []*machine{{Machine: &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: "n"}}}}}
	result, err := b.connect(t.Context(), b.scope)
	if err != nil || b.lost || result.After() != unreachableAfter {
		t.Errorf("at first: lost %t, again in %s, error %v", b.lost, result.After(), err)
	}
	b.Clock = testclock.NewFakePassiveClock(now.Add(unreachableAfter))
	if _, err := b.connect(t.Context(), b.scope); err != nil || !b.lost {
		t.Errorf("after the grace period: lost %t, error %v", b.lost, err)
	}
	for _, c := range b.health(b.machines[0]) {
		if c.Status != corev1.ConditionUnknown {
			t.Errorf("condition %+v is not unknown", c)
		}
	}
}

type unreachableWorkloads struct{}

func (unreachableWorkloads) Get(context.Context, client.ObjectKey) (Workload, error) {
	return nil, remote.ErrNotConnected
}
