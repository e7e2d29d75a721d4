package cloud

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// source generates random numbers from random bytes.
type source struct{ io.Reader }

// Uint64 implements rand.Source. A failing reader makes the numbers predictable, which at worst costs a retry for a
// generated name.
func (s source) Uint64() uint64 {
	var b [8]byte
	_, _ = io.ReadFull(s.Reader, b[:])
	return binary.NativeEndian.Uint64(b[:])
}

// Group is everything that exists in one workload cluster: its objects, and its faults. It is safe for concurrent use.
type Group struct {
	*store.Store
	key   types.NamespacedName
	uid   types.UID
	power power
	// faultsSet is whether SetFaults was called in this process. Access is exclusive.
	faultsSet bool
}

func newGroup(o Options, key types.NamespacedName, uid types.UID) (*Group, error) {
	random := rand.New(source{o.Random}) //nolint:gosec // Its source reads Options.Random.
	g := &Group{key: key, uid: uid, power: power{Injector: faults.NewInjector(o.Clock, random), clock: o.Clock}}
	stored := store.Options{Clock: o.Clock, UIDs: o.Random, Names: random, Limit: o.Limit, Owner: uid, Power: g.power}
	if o.Directory != "" {
		stored.Journal = store.JournalPath(o.Directory, key)
	}
	var err error
	if g.Store, err = store.Open(stored); err != nil {
		return nil, err
	}
	return g, g.addNamespaces(string(uid))
}

// addNamespaces creates the namespaces of every cluster that do not exist, with stable UIDs.
func (g *Group) addNamespaces(seed string) error {
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Namespace",
			"metadata": map[string]any{
				"name":   namespace,
				"uid":    string(UID(seed, g.key.String(), namespace)),
				"labels": map[string]any{"kubernetes.io/metadata.name": namespace},
			},
			"spec":   map[string]any{"finalizers": []any{"kubernetes"}},
			"status": map[string]any{"phase": "Active"},
		}}
		if _, err := g.Create(store.Namespaces(), u, store.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// Key returns namespace and name of the workload cluster.
func (g *Group) Key() types.NamespacedName { return g.key }

// UID returns the UID of the group's owner, as given to EnsureGroup.
func (g *Group) UID() types.UID { return g.uid }

func (g *Group) close(forget bool) error {
	err := g.Close(forget)
	g.power.Close()
	return err
}

// UID derives a stable UID from a seed, so that objects that are recreated after a restart keep their UIDs and references
// to them stay valid.
func UID(seed ...string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join(seed, "\x00"))).String())
}
