package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDefaultReplicas(t *testing.T) {
	bounds := func(least, most string) map[string]string {
		return map[string]string{clusterv1.AutoscalerMinSizeAnnotation: least, clusterv1.AutoscalerMaxSizeAnnotation: most}
	}
	cases := map[string]struct {
		reason         string
		requested, old *int32
		annotations    map[string]string
		want           int32
		err            string
	}{
		"Requested":   {reason: "a requested number is kept, even outside the limits", requested: ptr.To(int32(9)), annotations: bounds("2", "4"), want: 9},
		"Zero":        {reason: "zero is a requested number", requested: ptr.To(int32(0)), old: ptr.To(int32(3)), want: 0},
		"Nothing":     {reason: "the default is one", want: 1},
		"NothingLess": {reason: "the default is one, even if the old number is higher", old: ptr.To(int32(3)), want: 1},
		"OneBound":    {reason: "a single limit is ignored", old: ptr.To(int32(3)), annotations: map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2"}, want: 1},
		"New":         {reason: "a new object starts at the lower limit", annotations: bounds("2", "4"), want: 2},
		"Below":       {reason: "a number below the limits is raised", old: ptr.To(int32(1)), annotations: bounds("2", "4"), want: 2},
		"Within":      {reason: "a number within the limits is kept", old: ptr.To(int32(3)), annotations: bounds("2", "4"), want: 3},
		"Above":       {reason: "a number above the limits is lowered", old: ptr.To(int32(5)), annotations: bounds("2", "4"), want: 4},
		"NotANumber":  {reason: "the limit is not a number", annotations: bounds("two", "4"), err: `cannot default spec.replicas: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size is "two", must be an integer`},
		"TooBig":      {reason: "the limit is not a 32-bit integer", annotations: bounds("2", "4000000000"), err: `cannot default spec.replicas: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size is "4000000000", must be an integer`},
		"NotUsed":     {reason: "limits are ignored if a number is requested", requested: ptr.To(int32(1)), annotations: bounds("two", "4"), want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := defaultReplicas(tc.requested, tc.old, tc.annotations)
			if text(err) != tc.err || got != tc.want {
				t.Errorf("%s: got %d, %v; want %d, %s", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}

func TestOldObject(t *testing.T) {
	request := func(raw string) admission.Request {
		return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{OldObject: runtime.RawExtension{Raw: []byte(raw)}}}
	}
	if old, err := oldObject[clusterv1.Machine](t.Context()); old != nil || err != nil {
		t.Errorf("old = %v, err = %v; want none without a request", old, err)
	}
	if old, err := oldObject[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(""))); old != nil || err != nil {
		t.Errorf("old = %v, err = %v; want none for a creation", old, err)
	}
	old, err := oldObject[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(`{"spec":{"clusterName":"c"}}`)))
	if err != nil || old.Spec.ClusterName != "c" {
		t.Errorf("old = %v, err = %v; want the old object of an update", old, err)
	}
	if _, err := oldObject[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(`{`))); err == nil {
		t.Error("want an error for an invalid object")
	}
}

func TestValidateVersion(t *testing.T) {
	cases := map[string]struct {
		reason, version, want string
		invalid               bool
	}{
		"Prefixed": {reason: "a valid version is kept", version: "v1.30.2", want: "v1.30.2"},
		"Bare":     {reason: "the leading v is added", version: "1.30.2", want: "v1.30.2"},
		"Build":    {reason: "suffixes of vendors are valid", version: "v1.30.2-gke.1+build_3", want: "v1.30.2-gke.1+build_3"},
		"Empty":    {reason: "a version is optional"},
		"Short":    {reason: "the patch version is required", version: "1.30", want: "v1.30", invalid: true},
		"Zeros":    {reason: "leading zeros are invalid", version: "v1.030.0", want: "v1.030.0", invalid: true},
		"Words":    {reason: "a word is invalid", version: "latest", want: "vlatest", invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.version
			defaultVersion(&got)
			if errs := validateVersion(got, field.NewPath("v")); got != tc.want || (len(errs) > 0) != tc.invalid {
				t.Errorf("%s: got %q, %v; want %q", tc.reason, got, errs, tc.want)
			}
		})
	}
}

func TestRules(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	cases := map[string]struct {
		reason string
		errs   field.ErrorList
		want   []string
	}{
		"Selects":       {reason: "the labels match", errs: validateSelector(selector, map[string]string{"a": "b", "c": "d"})},
		"DoesNotSelect": {reason: "the labels do not match", errs: validateSelector(selector, nil), want: []string{`spec.template.metadata.labels: Invalid value: null: must match spec.selector "a=b"`}},
		"NoSelector":    {reason: "the operator is unknown", errs: validateSelector(bad, nil), want: []string{`spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`}},
		"SameCluster":   {reason: "the name is unchanged", errs: validateClusterName("c", "c")},
		"FirstCluster":  {reason: "the object is new", errs: validateClusterName("", "c")},
		"OtherCluster":  {reason: "the name is changed", errs: validateClusterName("c", "d"), want: []string{`spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range tc.errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
