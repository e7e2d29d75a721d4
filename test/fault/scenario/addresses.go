package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	ipamAPI = "ipam.cluster.x-k8s.io/v1beta1"
	poolAPI = "ipam.cluster.x-k8s.io/v1alpha2"
)

// addressPools returns the pools of addresses, and how many each has. The small one is exhausted until a claim is deleted.
func addressPools() map[string]int { return map[string]int{"large": 6, "small": 2} }

// addresses returns the scenarios of IPAM. They have no Cluster.
func addresses() []Scenario {
	// Of large, two claims are released and another one is created; of small, one that may or may not have an address.
	before := []string{"large-0", "large-1", "large-2", "large-3", "small-0", "small-1", "small-2"}
	released := []string{"large-0", "large-2", "small-0"}
	after := []string{"large-1", "large-3", "large-4", "small-1", "small-2"}
	changes := []Change{
		CreateAddressPools, ClaimAddresses(before...), poolsUsed(4, 2), ReleaseAddresses(released...), ClaimAddresses("large-4"),
	}
	return []Scenario{
		{Name: "addresses-claim", IPAM: true, Change: changes, Done: []Condition{Allocated(after...)}},
		{
			Name: "addresses-release", IPAM: true, Deletes: true,
			Change: slices.Concat(changes, []Change{ReleaseAddresses(after...), DeleteAddressPools}), Done: []Condition{noAddresses},
		},
	}
}

// CreateAddressPools creates the pools of addresses.
func CreateAddressPools(ctx context.Context, t Target) error {
	for name, size := range addressPools() {
		pool := object(poolAPI, "InClusterIPPool", t.Namespace, name)
		pool.Object["spec"] = map[string]any{"addresses": []any{fmt.Sprintf("10.0.0.1-10.0.0.%d", size)}, "prefix": int64(24)}
		if err := ignoreExists(t.Client.Create(ctx, pool)); err != nil {
			return err
		}
	}
	return nil
}

// ClaimAddresses creates IPAddressClaims, each of the pool that its name begins with.
func ClaimAddresses(names ...string) Change {
	return func(ctx context.Context, t Target) error {
		for _, name := range names {
			claim := object(ipamAPI, "IPAddressClaim", t.Namespace, name)
			claim.Object["spec"] = map[string]any{"poolRef": map[string]any{
				"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": name[:len("large")],
			}}
			if err := ignoreExists(t.Client.Create(ctx, claim)); err != nil {
				return err
			}
		}
		return nil
	}
}

// ReleaseAddresses deletes IPAddressClaims.
func ReleaseAddresses(names ...string) Change {
	return func(ctx context.Context, t Target) error {
		for _, name := range names {
			if err := client.IgnoreNotFound(t.Client.Delete(ctx, object(ipamAPI, "IPAddressClaim", t.Namespace, name))); err != nil {
				return err
			}
		}
		return nil
	}
}

// DeleteAddressPools deletes the pools of addresses, which may still be in use.
func DeleteAddressPools(ctx context.Context, t Target) error {
	for name := range addressPools() {
		if err := client.IgnoreNotFound(t.Client.Delete(ctx, object(poolAPI, "InClusterIPPool", t.Namespace, name))); err != nil {
			return err
		}
	}
	return nil
}

// poolsUsed fails, and is retried, until so many IPAddresses of the pools exist. Otherwise it would depend on timing whether claims are
// released before they have addresses.
func poolsUsed(large, small int) Change {
	return func(ctx context.Context, t Target) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(ipamAPI)
		list.SetKind("IPAddressList")
		if err := t.Client.List(ctx, list, client.InNamespace(t.Namespace)); err != nil {
			return err
		}
		if n := len(list.Items); n != large+small {
			return fmt.Errorf("%d IPAddresses exist, want %d", n, large+small)
		}
		return nil
	}
}

// Allocated is true when exactly these claims exist, each has an address of its own, and the numbers of the pools are right.
func Allocated(names ...string) Condition {
	return func(now history.State) error {
		used, holder := map[string]int{}, map[string]string{}
		for _, claim := range now.Of("IPAddressClaim") {
			name := claim.GetName()
			ref, _, _ := unstructured.NestedString(claim.Object, "status", "addressRef", "name")
			address := now[history.Key{Kind: "IPAddress", Name: ref}]
			if !slices.Contains(names, name) || address == nil || Status(claim, "Ready") != "True" {
				return fmt.Errorf("claim %s has IPAddress %q, want one for each of %v", name, ref, names)
			}
			pool := name[:len("large")]
			text, _, _ := unstructured.NestedString(address.Object, "spec", "address")
			if other, taken := holder[pool+"/"+text]; taken {
				return fmt.Errorf("claims %s and %s have address %s", name, other, text)
			}
			holder[pool+"/"+text] = name
			used[pool]++
		}
		if n := len(now.Of("IPAddress")); n != len(names) || len(holder) != len(names) {
			return fmt.Errorf("%d IPAddresses of %d claims, want %d", n, len(holder), len(names))
		}
		return counts(now, used)
	}
}

// counts checks the numbers of the pools.
func counts(now history.State, used map[string]int) error {
	for name, size := range addressPools() {
		pool := now[history.Key{Kind: "InClusterIPPool", Name: name}]
		if pool == nil {
			return fmt.Errorf("pool %s does not exist", name)
		}
		for field, want := range map[string]int{"total": size, "used": used[name], "free": size - used[name], "outOfRange": 0} {
			if have := Number(pool, "status", "ipAddresses", field); have != want {
				return fmt.Errorf("status.ipAddresses.%s of pool %s is %d, want %d", field, name, have, want)
			}
		}
	}
	return nil
}

// noAddresses is true when no pool, claim or IPAddress exists.
func noAddresses(now history.State) error {
	for key := range now {
		if ofIPAM(key) {
			return errors.New(key.Kind + " " + key.Name + " still exists")
		}
	}
	return nil
}

// ofIPAM reports whether an object is one of the scenarios of IPAM.
func ofIPAM(key history.Key) bool {
	return key.Kind == "IPAddress" || key.Kind == "IPAddressClaim" || key.Kind == "InClusterIPPool"
}
