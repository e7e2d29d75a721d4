package machine

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFinish(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   client.Object
		waits  bool
	}{
		"Gone":           {"no objects are left", nil, false},
		"Infrastructure": {"an infrastructure machine that is not in the cache must not be orphaned", infraMachine(nil), true},
		"Config":         {"a bootstrap config that is not in the cache must not be orphaned", config(nil), true},
		"Foreign":        {"it belongs to another Machine", provided("GenericMachine", infrastructure, machine(named("m-2")), nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			w, m := newWorld(t, objects...), machine(deleting)
			w.Cache.Hide(objects...)
			r, err := w.step(t, "finish", &scope{machine: m})
			if err != nil || r.Ends() != tc.waits || (len(m.Finalizers) > 0) != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q, finalizers are %q, err = %v", tc.reason, r.Waiting(), m.Finalizers, err)
			}
		})
	}
}
