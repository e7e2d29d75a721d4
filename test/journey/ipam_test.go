package journey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// ipamInstalled guards the installation of the IPAM provider, which the tests of this file share.
var ipamInstalled sync.Once // TestMain cannot pass it to the tests otherwise.

// network is a namespace of a management cluster with the in-cluster IPAM provider. The test is the infrastructure provider: ConfigMaps
// are its machines.
type network struct {
	*World
	api client.Client
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	w := shared.World(t)
	ipamInstalled.Do(func() {
		if r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--ipam", "in-cluster", "--wait-providers"); r.Failed {
			t.Error(r)
		}
	})
	s := runtime.NewScheme()
	testenv.Must(t, corev1.AddToScheme(s), clusterv1.AddToScheme(s), ipamv1.AddToScheme(s), ipamv1alpha1.AddToScheme(s), inclusterv1.AddToScheme(s))
	api, err := client.New(w.Config, client.Options{Scheme: s})
	testenv.Must(t, err)
	return &network{World: w, api: api}
}

// kubectl runs kubectl in the namespace.
func (n *network) kubectl(input string, args ...string) Result {
	return n.Tools.Kubectl(n.t.Context(), input, append([]string{"--kubeconfig", n.Kubeconfig, "--namespace", n.Namespace}, args...)...)
}

// applied applies manifests.
func (n *network) applied(manifests string) {
	n.t.Helper()
	if r := n.kubectl(manifests, "apply", "--filename", "-"); r.Failed {
		n.t.Fatal(r)
	}
}

// machine creates a machine that needs an address of a pool, and its claim.
func (n *network) machine(namespace, name, poolKind, pool string) *corev1.ConfigMap {
	n.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	testenv.Must(n.t, n.api.Create(n.t.Context(), m))
	testenv.Must(n.t, n.api.Create(n.t.Context(), &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(m, corev1.SchemeGroupVersion.WithKind("ConfigMap"), true)},
		},
		Spec: ipamv1.IPAddressClaimSpec{PoolRef: corev1.TypedLocalObjectReference{APIGroup: ptr.To("ipam.cluster.x-k8s.io"), Kind: poolKind, Name: pool}},
	}))
	return m
}

// gets waits until a machine has an address: it follows the claim's reference, as providers do.
func (n *network) gets(m *corev1.ConfigMap, address string) {
	n.t.Helper()
	testenv.Eventually(n.t, "machine "+m.Name+" gets address "+address, func() error {
		claim := &ipamv1.IPAddressClaim{}
		if err := n.api.Get(n.t.Context(), client.ObjectKeyFromObject(m), claim); err != nil {
			return err
		}
		got := &ipamv1.IPAddress{}
		if err := n.api.Get(n.t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: claim.Status.AddressRef.Name}, got); err != nil {
			return err
		}
		if got.Spec.Address != address || !ConditionIsTrue(claim, clusterv1.ReadyCondition) {
			return fmt.Errorf("address %s, conditions %v", got.Spec.Address, claim.Status.Conditions)
		}
		return nil
	})
}

// removed deletes a machine, and with it the claim, as the garbage collector does when it deletes the owner in the background.
func (n *network) removed(machines ...*corev1.ConfigMap) {
	n.t.Helper()
	for _, m := range machines {
		testenv.Must(n.t, n.api.Delete(n.t.Context(), m))
	}
}

func (n *network) gone(o client.Object) {
	n.t.Helper()
	testenv.Eventually(n.t, fmt.Sprintf("%T %s is deleted", o, o.GetName()), func() error {
		err := n.api.Get(n.t.Context(), client.ObjectKeyFromObject(o), o)
		if !apierrors.IsNotFound(err) {
			text, _ := yaml.Marshal(o)
			return errors.Join(fmt.Errorf("it exists:\n%s", text), err)
		}
		return nil
	})
}

// TestAddressesOfAPool is the life of a pool: claims, exhaustion, release, changes, deletion.
func TestAddressesOfAPool(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	a := n.machine(n.Namespace, "a", "InClusterIPPool", "lan") // Before the pool.
	n.applied(`
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: lan}
spec:
  addresses: [10.10.0.0/30, 10.10.0.20-10.10.0.21]
  excludedAddresses: [10.10.0.21]
  prefix: 24
  gateway: 10.10.0.1
`)
	pool := &inclusterv1.InClusterIPPool{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "lan"}}
	n.gets(a, "10.10.0.2")
	b := n.machine(n.Namespace, "b", "InClusterIPPool", "lan")
	n.gets(b, "10.10.0.3")
	c := n.machine(n.Namespace, "c", "InClusterIPPool", "lan")
	n.gets(c, "10.10.0.20")
	d := n.machine(n.Namespace, "d", "InClusterIPPool", "lan")
	testenv.Eventually(t, "the claim reports that the pool is exhausted", func() error {
		claim := &ipamv1.IPAddressClaim{}
		testenv.Must(t, n.api.Get(t.Context(), client.ObjectKeyFromObject(d), claim))
		if ready := FindCondition(claim, clusterv1.ReadyCondition); ready == nil || ready.Reason != "PoolExhausted" {
			return fmt.Errorf("conditions = %v", claim.Status.Conditions)
		}
		return nil
	})
	r := n.kubectl("", "get", "inclusterippools")
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if diff := cmp.Diff([]string{"NAME", "ADDRESSES", "TOTAL", "FREE", "USED"}, strings.Fields(lines[0])); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"lan", `["10.10.0.0/30","10.10.0.20-10.10.0.21"]`, "3", "0", "3"}, strings.Fields(lines[len(lines)-1])); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	rejected(t, n.kubectl("", "patch", "inclusterippool", "lan", "--type", "merge", "--patch", `{"spec":{"addresses":["10.10.0.3","10.10.0.20"]}}`),
		"spec: Forbidden", "addresses in use cannot be removed: 10.10.0.2: delete their IPAddressClaims first")
	rejected(t, n.kubectl("", "patch", "inclusterippool", "lan", "--type", "merge", "--patch", `{"spec":{"excludedAddresses":["10.10.0.0/24"]}}`),
		"addresses in use cannot be removed: 10.10.0.2, 10.10.0.3, 10.10.0.20:")

	n.removed(b)
	n.gets(d, "10.10.0.3")
	n.gone(&ipamv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "b"}})
	n.applied(`
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: lan}
spec:
  addresses: [10.10.0.0/30, 10.10.0.20-10.10.0.21]
  excludedAddresses: []
  prefix: 24
  gateway: 10.10.0.1
`)
	e := n.machine(n.Namespace, "e", "InClusterIPPool", "lan")
	n.gets(e, "10.10.0.21")

	// An address in use cannot be deleted, nor can its pool.
	inUse := &ipamv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "a"}}
	testenv.Must(t, n.api.Delete(t.Context(), inUse), n.api.Delete(t.Context(), pool))
	testenv.Eventually(t, "the pool reports that it is in use", func() error {
		testenv.Must(t, n.api.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if !slices.ContainsFunc(pool.Status.Conditions, func(c clusterv1beta2.Condition) bool { return c.Reason == "PoolInUse" }) {
			return fmt.Errorf("conditions = %v", pool.Status.Conditions)
		}
		return nil
	})
	n.gets(a, "10.10.0.2")
	n.removed(a, c, d, e)
	n.gone(pool)
	n.gone(inUse)
}

// TestAddressesOfAGlobalPool gives addresses of one pool to two namespaces, in IPv6.
func TestAddressesOfAGlobalPool(t *testing.T) {
	t.Parallel()
	one := newNetwork(t)
	two := one.Management.World(t)
	pool := &inclusterv1.GlobalInClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "wan-" + one.Namespace},
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{"fd00:10::/64"}, Prefix: 64, Gateway: "fd00:10::1"},
	}
	testenv.Must(t, one.api.Create(t.Context(), pool))
	a := one.machine(one.Namespace, "a", "GlobalInClusterIPPool", pool.Name)
	one.gets(a, "fd00:10::2")
	b := one.machine(two.Namespace, "a", "GlobalInClusterIPPool", pool.Name)
	one.gets(b, "fd00:10::3")
	one.removed(a, b)
	testenv.Eventually(t, "all addresses are free", func() error {
		testenv.Must(t, one.api.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if pool.Status.Addresses.Used > 0 {
			return fmt.Errorf("numbers = %+v", pool.Status.Addresses)
		}
		return nil
	})
	testenv.Must(t, one.api.Delete(t.Context(), pool))
	one.gone(pool)
}

// TestANamespaceWithAddressesIsDeleted deletes a namespace with a pool in use: the order of deletion is random.
func TestANamespaceWithAddressesIsDeleted(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace + "-site"}}
	testenv.Must(t, n.api.Create(t.Context(), namespace))
	testenv.Must(t, n.api.Create(t.Context(), &inclusterv1.InClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "lan"},
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{"10.10.0.5-10.10.0.6"}, Prefix: 24},
	}))
	n.gets(n.machine(namespace.Name, "a", "InClusterIPPool", "lan"), "10.10.0.5")
	n.gets(n.machine(namespace.Name, "b", "InClusterIPPool", "lan"), "10.10.0.6")
	n.machine(namespace.Name, "c", "InClusterIPPool", "lan")
	testenv.Must(t, n.api.Delete(t.Context(), namespace))
	n.gone(namespace)
}

// ipamMistakes are invalid objects for each version of the claims and addresses.
func ipamMistakes(version string) []mistake {
	claim := func(poolRef string) string {
		return "apiVersion: ipam.cluster.x-k8s.io/" + version + "\nkind: IPAddressClaim\nmetadata: {name: wrong}\nspec: {poolRef: " + poolRef + "}\n"
	}
	address := func(spec string) string {
		return "apiVersion: ipam.cluster.x-k8s.io/" + version + "\nkind: IPAddress\nmetadata: {name: wrong}\nspec:\n" + spec
	}
	const (
		pool  = "{apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: p}"
		valid = "  poolRef: " + pool + "\n  claimRef: {name: none}\n"
	)
	file := strings.Fields(apply)
	patch := func(resource, patch string) []string {
		return []string{"patch", resource + "." + version + ".ipam.cluster.x-k8s.io/right", "--type", "merge", "--patch", patch}
	}
	return []mistake{
		{"a claim without an API group", file, claim("{kind: InClusterIPPool, name: p}"), []string{"spec.poolRef.apiGroup", "Required"}},
		{"a claim without a kind", file, claim("{apiGroup: g, kind: '', name: p}"), []string{"spec.poolRef.kind", "Required"}},
		{"a claim without the name of a pool", file, claim("{apiGroup: g, kind: K, name: ''}"), []string{"spec.poolRef.name", "Required"}},
		{"a claim with another pool", patch("ipaddressclaims", `{"spec":{"poolRef":{"name":"q"}}}`), "", []string{"spec", "cannot be changed"}},
		{"an address without an API group", file, address("  poolRef: {kind: K, name: p}\n  claimRef: {name: c}\n  address: 10.0.0.1\n  prefix: 24\n"), []string{"spec.poolRef.apiGroup", "Required"}},
		{"an address without a claim", file, address("  poolRef: " + pool + "\n  claimRef: {name: ''}\n  address: 10.0.0.1\n  prefix: 24\n"), []string{"spec.claimRef.name", "Required"}},
		{"not an address", file, address(valid + "  address: 10.0.0.256\n  prefix: 24\n"), []string{"spec.address", "10.0.0.256", "must be an IPv4 or IPv6 address"}},
		{"an address with a zone", file, address(valid + "  address: fe80::1%eth0\n  prefix: 64\n"), []string{"spec.address", "must be an IPv4 or IPv6 address"}},
		{"a prefix that is too long for IPv4", file, address(valid + "  address: 10.0.0.1\n  prefix: 33\n"), []string{"spec.prefix", "between 0 and 32", "IPv4"}},
		{"a prefix that is too long for IPv6", file, address(valid + "  address: fd00::1\n  prefix: 129\n"), []string{"spec.prefix", "between 0 and 128", "IPv6"}},
		{"a negative prefix", file, address(valid + "  address: 10.0.0.1\n  prefix: -1\n"), []string{"spec.prefix", "between 0 and 32"}},
		{"not a gateway", file, address(valid + "  address: 10.0.0.1\n  prefix: 24\n  gateway: router\n"), []string{"spec.gateway", "router"}},
		{"another pool than that of its claim", file, address("  poolRef: " + pool + "\n  claimRef: {name: right}\n  address: 10.0.0.1\n  prefix: 24\n"),
			[]string{"spec.poolRef", "must be the pool of IPAddressClaim right: Other.ipam.example.org p"}},
		{"another address", patch("ipaddresses", `{"spec":{"address":"10.0.0.2"}}`), "", []string{"spec", "cannot be changed"}},
	}
}

// poolMistakes are invalid pools of a kind.
func poolMistakes(kind string) []mistake {
	pool := func(spec string) string {
		return "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: " + kind + "\nmetadata: {name: wrong}\nspec: " + spec + "\n"
	}
	file := strings.Fields(apply)
	return []mistake{
		{"no addresses", file, pool("{addresses: [], prefix: 24}"), []string{"spec.addresses"}},
		{"no prefix", file, pool("{addresses: [10.0.0.1]}"), []string{"spec.prefix"}},
		{"an invalid address", file, pool("{addresses: [10.0.0.1, ten], prefix: 24}"), []string{"spec.addresses[1]", "ten", "a range such as"}},
		{"a range backwards", file, pool("{addresses: [10.0.0.9-10.0.0.1], prefix: 24}"), []string{"spec.addresses[0]", "must begin with the lower address"}},
		{"two IP families", file, pool("{addresses: [10.0.0.1, 'fd00::1'], prefix: 24}"), []string{"spec.addresses[1]", "one pool for each IP family"}},
		{"a prefix that is too long", file, pool("{addresses: [10.0.0.1], prefix: 33}"), []string{"spec.prefix", "between 1 and 32"}},
		{"an invalid gateway", file, pool("{addresses: [10.0.0.1], prefix: 24, gateway: router}"), []string{"spec.gateway", "router"}},
		{"an invalid exclusion", file, pool("{addresses: [10.0.0.1], prefix: 24, excludedAddresses: [x]}"), []string{"spec.excludedAddresses[0]", "x"}},
		{"too many networks", file, pool("{addresses: ['fd00::/16'], prefix: 64}"), []string{"spec.prefix", "65536"}},
	}
}

// TestIPAMMistakesAreRejected checks the errors for every invalid field, in all versions.
func TestIPAMMistakesAreRejected(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.applied(`
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddressClaim
metadata: {name: right}
spec: {poolRef: {apiGroup: ipam.example.org, kind: Other, name: p}}
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha1
kind: IPAddress
metadata: {name: right}
spec: {poolRef: {apiGroup: ipam.example.org, kind: Other, name: p}, claimRef: {name: none}, address: 10.0.0.1, prefix: 24}
`)
	all := map[string][]mistake{}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		all[version] = ipamMistakes(version)
	}
	for _, kind := range []string{"InClusterIPPool", "GlobalInClusterIPPool"} {
		all[kind] = poolMistakes(kind)
	}
	for of, mistakes := range all {
		for _, tc := range mistakes {
			t.Run(of+": "+tc.reason, func(t *testing.T) { rejected(t, n.kubectl(tc.input, tc.args...), tc.words...) })
		}
	}
	names := func(list client.ObjectList) []string {
		testenv.Must(t, n.api.List(context.WithoutCancel(t.Context()), list, client.InNamespace(n.Namespace)))
		var out []string
		switch l := list.(type) {
		case *ipamv1.IPAddressClaimList:
			for _, i := range l.Items {
				out = append(out, i.Name+" "+i.Spec.PoolRef.Name)
			}
		case *ipamv1.IPAddressList:
			for _, i := range l.Items {
				out = append(out, i.Name+" "+i.Spec.Address)
			}
		}
		return out
	}
	if got := slices.Concat(names(&ipamv1.IPAddressClaimList{}), names(&ipamv1.IPAddressList{})); !slices.Equal(got, []string{"right p", "right 10.0.0.1"}) {
		t.Errorf("mistakes changed objects: %v", got)
	}
}
