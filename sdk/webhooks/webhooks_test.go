package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

type labeling struct{ err error }

func (l labeling) Default(_ context.Context, m *clusterv1.Machine) error {
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
		want   string
		denied bool
	}{
		"Changed": {
			reason: "a label is added; an empty list and unknown fields are kept, and no empty objects are added",
			raw:    `{"metadata":{"name":"m","namespace":"ns"},"spec":{"clusterName":"c","unknown":[]}}`,
			want:   `[{"op":"add","path":"/metadata/labels","value":{"cluster.x-k8s.io/cluster-name":"c"}}]`,
		},
		"Nothing": {
			reason: "an object that has its defaults gets an empty patch",
			raw:    `{"metadata":{"name":"m","namespace":"ns","labels":{"cluster.x-k8s.io/cluster-name":"c"}},"spec":{"clusterName":"c"}}`,
			want:   `[]`,
		},
		"HugeInteger": {
			reason: "integers above 2^53 are exact, in what is added and beside it",
			raw:    `{"metadata":{"name":"m","namespace":"ns","annotations":{"a/b~c":""},"generation":9007199254740993},"spec":{"clusterName":"9007199254740993","unknown":[9007199254740995,1.50]}}`,
			want:   `[{"op":"add","path":"/metadata/labels","value":{"cluster.x-k8s.io/cluster-name":"9007199254740993"}}]`,
		},
		"Refused": {
			reason: "an error denies the request",
			raw:    `{"metadata":{"name":"m","namespace":"ns"},"spec":{"clusterName":"c"}}`,
			err:    errors.New("no"), denied: true, want: `null`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hook := newDefaulting(&clusterv1.Machine{}, labeling{tc.err})
			got := hook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "ns", Name: "m", Object: runtime.RawExtension{Raw: []byte(tc.raw)},
			}})
			if got.Allowed == tc.denied {
				t.Fatalf("%s: allowed = %v", tc.reason, got.Allowed)
			}
			patch, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(patch)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTextsThatYAMLReadsAsSomethingElse(t *testing.T) {
	for raw, want := range map[string]string{
		`{"spec":{"clusterName":false}}`:  `quote it`,
		`{"spec":{"clusterName":1.30}}`:   `quote it`,
		`{"spec":{"clusterName":["a"]}}`:  `cannot unmarshal array`,
		`{"spec":{"bootstrap":"no map"}}`: `cannot unmarshal string`,
	} {
		hook := newDefaulting(&clusterv1.Machine{}, labeling{})
		got := hook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(raw)}}})
		if got.Allowed || !strings.Contains(got.Result.Message, want) || strings.Contains(got.Result.Message, "quote it") != (want == "quote it") {
			t.Errorf("%s: %s, want %s", raw, got.Result.Message, want)
		}
	}
}

// sizing sets a variable, like the default of a class.
type sizing struct{ value string }

func (s sizing) Default(_ context.Context, c *clusterv1.Cluster) error {
	c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, clusterv1.ClusterVariable{Name: "size", Value: apiextensionsv1.JSON{Raw: []byte(s.value)}})
	return nil
}

// The patch has the number that the default has, whatever its size.
func TestDefaultsAreExact(t *testing.T) {
	for _, value := range []string{"9007199254740993", "-9007199254740993", "9223372036854775807", "18446744073709551615", "0.1", "1e+30", `{"a":[9007199254740993]}`} {
		for _, raw := range []string{
			`{"metadata":{"name":"c","namespace":"ns"},"spec":{"topology":{"class":"c","version":"v1.30.0"}}}`,
			`{"metadata":{"name":"c","namespace":"ns"},"spec":{"topology":{"class":"c","version":"v1.30.0","variables":[{"name":"own","value":9007199254740995}]}}}`,
		} {
			hook := newDefaulting(&clusterv1.Cluster{}, sizing{value})
			got := hook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "ns", Name: "c", Object: runtime.RawExtension{Raw: []byte(raw)},
			}})
			patch, err := json.Marshal(got.Patches)
			if err != nil || !strings.Contains(string(patch), `{"name":"size","value":`+value+`}`) {
				t.Errorf("%s in %s: %s, %v", value, raw, patch, err)
			}
			if strings.Contains(raw, "own") && !strings.Contains(string(patch), `{"name":"own","value":9007199254740995}`) {
				t.Errorf("the value of the user changes: %s", patch)
			}
		}
	}
}
