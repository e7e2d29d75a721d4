package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestReplicas(t *testing.T) {
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
		"Requested":     {reason: "what is asked for is kept, bounds or not", requested: ptr.To(int32(9)), annotations: bounds("2", "4"), want: 9},
		"Zero":          {reason: "zero is a number", requested: ptr.To(int32(0)), old: ptr.To(int32(3)), want: 0},
		"Nothing":       {reason: "one is the default", want: 1},
		"NothingNow":    {reason: "also if there were more", old: ptr.To(int32(3)), want: 1},
		"OneBound":      {reason: "one bound is none", old: ptr.To(int32(3)), annotations: map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2"}, want: 1},
		"New":           {reason: "the autoscaler starts at the least", annotations: bounds("2", "4"), want: 2},
		"Below":         {reason: "less is brought up", old: ptr.To(int32(1)), annotations: bounds("2", "4"), want: 2},
		"Within":        {reason: "what the autoscaler chose stays", old: ptr.To(int32(3)), annotations: bounds("2", "4"), want: 3},
		"Above":         {reason: "more is brought down", old: ptr.To(int32(5)), annotations: bounds("2", "4"), want: 4},
		"NotANumber":    {reason: "bounds are numbers", annotations: bounds("two", "4"), err: `spec.replicas cannot be defaulted: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size is "two", it must be a number`},
		"NotASmallOne":  {reason: "and small ones", annotations: bounds("2", "4000000000"), err: `spec.replicas cannot be defaulted: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size is "4000000000", it must be a number`},
		"NotAskedAbout": {reason: "what is not needed is not read", requested: ptr.To(int32(1)), annotations: bounds("two", "4"), want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Replicas(tc.requested, tc.old, tc.annotations)
			if message(err) != tc.err || got != tc.want {
				t.Errorf("%s: got %d, %v; want %d, %s", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}

func TestOld(t *testing.T) {
	request := func(raw string) admission.Request {
		return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{OldObject: runtime.RawExtension{Raw: []byte(raw)}}}
	}
	if old, err := Old[clusterv1.Machine](t.Context()); old != nil || err != nil {
		t.Errorf("without a request there is nothing old: %v, %v", old, err)
	}
	if old, err := Old[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(""))); old != nil || err != nil {
		t.Errorf("nor when something is created: %v, %v", old, err)
	}
	old, err := Old[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(`{"spec":{"clusterName":"c"}}`)))
	if err != nil || old.Spec.ClusterName != "c" {
		t.Errorf("what is updated was something: %v, %v", old, err)
	}
	if _, err := Old[clusterv1.Machine](admission.NewContextWithRequest(t.Context(), request(`{`))); err == nil {
		t.Error("what cannot be read is an error")
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason, version, want string
		invalid               bool
	}{
		"Prefixed": {reason: "stays", version: "v1.30.2", want: "v1.30.2"},
		"Bare":     {reason: "gets its v", version: "1.30.2", want: "v1.30.2"},
		"Build":    {reason: "vendors add what they like", version: "v1.30.2-gke.1+build_3", want: "v1.30.2-gke.1+build_3"},
		"Empty":    {reason: "is none", want: "", invalid: true},
		"Short":    {reason: "needs a patch", version: "1.30", want: "v1.30", invalid: true},
		"Zeros":    {reason: "has no leading zeros", version: "v1.030.0", want: "v1.030.0", invalid: true},
		"Words":    {reason: "is no word", version: "latest", want: "vlatest", invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.version
			DefaultVersion(&got)
			if errs := Version(&got, field.NewPath("v")); got != tc.want || (len(errs) > 0) != tc.invalid {
				t.Errorf("%s: got %q, %v; want %q", tc.reason, got, errs, tc.want)
			}
		})
	}
	DefaultVersion(nil)
	if errs := Version(nil, nil); len(errs) > 0 {
		t.Errorf("no version is fine: %v", errs)
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
		"Selects":        {reason: "labels that match", errs: Selector(selector, map[string]string{"a": "b", "c": "d"})},
		"DoesNotSelect":  {reason: "labels that do not", errs: Selector(selector, nil), want: []string{`spec.template.metadata.labels: Invalid value: null: must match spec.selector "a=b"`}},
		"NoSelector":     {reason: "an operator that is none", errs: Selector(bad, nil), want: []string{`spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`}},
		"SameNamespace":  {reason: "its own", errs: Namespace(&corev1.ObjectReference{Namespace: "n"}, "n", field.NewPath("ref"))},
		"NoNamespace":    {reason: "none", errs: Namespace(&corev1.ObjectReference{}, "n", field.NewPath("ref"))},
		"NoReference":    {reason: "nothing", errs: Namespace(nil, "n", field.NewPath("ref"))},
		"OtherNamespace": {reason: "another", errs: Namespace(&corev1.ObjectReference{Namespace: "o"}, "n", field.NewPath("ref")), want: []string{`ref.namespace: Invalid value: "o": must be "n", the namespace of the object that refers to it`}},
		"SameCluster":    {reason: "no change", errs: ClusterName("c", "c")},
		"FirstCluster":   {reason: "new", errs: ClusterName("", "c")},
		"OtherCluster":   {reason: "a change", errs: ClusterName("c", "d"), want: []string{`spec.clusterName: Forbidden: cannot be changed: make a new object for the other Cluster`}},
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
