package cloud

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Cloud is the set of resource groups of one process. It is safe for concurrent use.
type Cloud struct {
	options Options

	mu     sync.RWMutex
	groups map[types.NamespacedName]*Group
}

// New returns a Cloud without resource groups. EnsureGroup loads durable groups.
func New(o Options) *Cloud {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Limit == 0 {
		o.Limit = store.DefaultLimit
	}
	return &Cloud{options: o, groups: map[types.NamespacedName]*Group{}}
}

// EnsureGroup returns the resource group of a workload cluster, and creates it if needed. uid is the UID of its owner: a
// durable group of an earlier owner of the same name is discarded. A new group contains the namespaces default,
// kube-system, kube-public and kube-node-lease.
func (c *Cloud) EnsureGroup(key types.NamespacedName, uid types.UID) (*Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if g, found := c.groups[key]; found {
		if g.uid == uid {
			return g, nil
		}
		if err := g.close(true); err != nil {
			return nil, err
		}
		delete(c.groups, key)
	}
	if c.options.Directory != "" && (!isName(key.Namespace) || !isName(key.Name)) {
		return nil, fmt.Errorf("open resource group %q: invalid file name", key.String())
	}
	g, err := newGroup(c.options, key, uid)
	if err != nil {
		return nil, fmt.Errorf("open resource group %s: %w", key, err)
	}
	c.groups[key] = g
	return g, nil
}

// Group returns the resource group of a workload cluster, or false if there is none.
func (c *Cloud) Group(key types.NamespacedName) (*Group, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	g, found := c.groups[key]
	return g, found
}

// Groups returns the keys of all resource groups, sorted.
func (c *Cloud) Groups() []types.NamespacedName {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys := make([]types.NamespacedName, 0, len(c.groups))
	for key := range c.groups {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// Drop deletes a resource group and everything in it immediately, regardless of finalizers, and ends its watches, unless
// it has been replaced by another group.
func (c *Cloud) Drop(g *Group) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[g.key] != g {
		return nil
	}
	delete(c.groups, g.key)
	return g.close(true)
}

// Close ends all watches and closes all groups. Durable groups stay on disk.
func (c *Cloud) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, g := range c.groups {
		delete(c.groups, key)
		if err := g.close(false); err != nil {
			return err
		}
	}
	return nil
}
