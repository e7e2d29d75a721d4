package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchv2 "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

type labelling struct{ err error }

func (l labelling) Default(_ context.Context, m *clusterv1.Machine) error {
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[clusterv1.ClusterNameLabel] = m.Spec.ClusterName
	return l.err
}

func TestDefaultingChangesOnlyWhatWasDefaulted(t *testing.T) {
	cases := map[string]struct {
		reason string
		raw    string
		err    error
		want   []jsonpatchv2.Operation
		denied bool
	}{
		"Changed": {
			reason: "a label is added; an empty list and unknown fields stay as they are, no empty objects appear",
			raw:    `{"metadata":{"name":"m","namespace":"ns"},"spec":{"clusterName":"c","unknown":[]}}`,
			want: []jsonpatchv2.Operation{jsonpatchv2.NewOperation("add", "/metadata/labels",
				map[string]any{clusterv1.ClusterNameLabel: "c"})},
		},
		"Nothing": {
			reason: "an object that has its defaults gets an empty patch",
			raw:    `{"metadata":{"name":"m","namespace":"ns","labels":{"cluster.x-k8s.io/cluster-name":"c"}},"spec":{"clusterName":"c"}}`,
			want:   []jsonpatchv2.Operation{},
		},
		"Refused": {
			reason: "an error refuses the request",
			raw:    `{"metadata":{"name":"m","namespace":"ns"},"spec":{"clusterName":"c"}}`,
			err:    errors.New("no"), denied: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hook := Defaulting(&clusterv1.Machine{}, labelling{tc.err})
			got := hook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "ns", Name: "m", Object: runtime.RawExtension{Raw: []byte(tc.raw)},
			}})
			if got.Allowed == tc.denied {
				t.Fatalf("%s: allowed = %v", tc.reason, got.Allowed)
			}
			if diff := cmp.Diff(tc.want, got.Patches); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
