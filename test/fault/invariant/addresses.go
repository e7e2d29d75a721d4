package invariant

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

// addressesOnce checks that no two claims have the same address of a pool. An IPAddress whose claim does not exist is not in use: a
// process that was suspended may create one.
func addressesOnce(r Run) []Violation {
	return r.play(func(e history.Event, now history.State) *Violation {
		if kind := e.Object.GetKind(); kind != "IPAddress" && kind != "IPAddressClaim" {
			return nil
		}
		claims := map[types.UID]bool{}
		for _, c := range now.Of("IPAddressClaim") {
			claims[c.GetUID()] = true
		}
		holder := map[string]string{}
		for _, a := range now.Of("IPAddress") {
			owner := metav1.GetControllerOf(a)
			if owner == nil || !claims[owner.UID] {
				continue
			}
			address := field(a, "spec", "poolRef", "name") + " " + field(a, "spec", "address")
			if other, taken := holder[address]; taken {
				return &Violation{Detail: fmt.Sprintf("claims %s and %s have address %s", other, owner.Name, address)}
			}
			holder[address] = owner.Name
		}
		return nil
	})
}

func field(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}
