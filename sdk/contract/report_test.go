package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestReports(t *testing.T) {
	ready := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: reason, Message: message}}
	}
	for _, tt := range []struct {
		reason, fields string
		want           []metav1.Condition
		invalid        bool
	}{
		{reason: "nothing is reported", fields: `status: {}`},
		{reason: "those with severities, if there are no others", fields: `status: {conditions: [{type: Ready, status: "True"}]}`, want: ready("NoReasonReported", "")},
		{reason: "those of v1beta2 in v1beta1", fields: `
status:
  conditions: [{type: Ready, status: "False", severity: Info, reason: Old}]
  v1beta2: {conditions: [{type: Ready, status: "True", reason: Ready, message: all}]}`, want: ready("Ready", "all")},
		{reason: "an invalid list", fields: `status: {conditions: {}}`, invalid: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Object{Unstructured: parse(t, head+tt.fields)}.Reports()
			if diff := cmp.Diff(tt.want, got); (diff != "" && !tt.invalid) || (err != nil) != tt.invalid {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	versions := func(v string, n int32) []clusterv1.StatusVersion {
		return []clusterv1.StatusVersion{{Version: v, Replicas: ptr.To(n)}}
	}
	n := ptr.To[int32]
	for _, tt := range []struct {
		reason   string
		contract Version
		fields   string
		want     clusterv1.ClusterControlPlaneStatus
		invalid  bool
	}{
		{reason: "a new object", fields: `spec: {replicas: 3}`, want: clusterv1.ClusterControlPlaneStatus{DesiredReplicas: n(3)}},
		{reason: "what is not unavailable is available", fields: `
spec: {replicas: 3}
status: {version: v1.30.0, replicas: 3, updatedReplicas: 2, readyReplicas: 2, unavailableReplicas: 1}`,
			want: clusterv1.ClusterControlPlaneStatus{
				DesiredReplicas: n(3), Replicas: n(3), UpToDateReplicas: n(2), ReadyReplicas: n(2), AvailableReplicas: n(2), Versions: versions("v1.30.0", 3),
			}},
		{reason: "more are unavailable than wanted", fields: `
spec: {replicas: 1}
status: {replicas: 2, unavailableReplicas: 2}`,
			want: clusterv1.ClusterControlPlaneStatus{DesiredReplicas: n(1), Replicas: n(2), AvailableReplicas: n(0)}},
		{reason: "counters of v1beta2 win", contract: V1Beta1, fields: `
spec: {replicas: 3}
status: {replicas: 1, updatedReplicas: 1, readyReplicas: 0, unavailableReplicas: 1, versions: [{version: v1.29.2, replicas: 1}], v1beta2: {availableReplicas: 0}}`,
			want: clusterv1.ClusterControlPlaneStatus{
				DesiredReplicas: n(3), Replicas: n(1), UpToDateReplicas: n(1), ReadyReplicas: n(0), AvailableReplicas: n(0), Versions: versions("v1.29.2", 1),
			}},
		{reason: "the contract of v1beta2", contract: V1Beta2, fields: `
spec: {replicas: 3}
status: {replicas: 3, upToDateReplicas: 1, readyReplicas: 2, availableReplicas: 2, versions: [{version: v1.30.0, replicas: 3}]}`,
			want: clusterv1.ClusterControlPlaneStatus{
				DesiredReplicas: n(3), Replicas: n(3), UpToDateReplicas: n(1), ReadyReplicas: n(2), AvailableReplicas: n(2), Versions: versions("v1.30.0", 3),
			}},
		{reason: "a counter is a word", contract: V1Beta2, fields: `status: {readyReplicas: two}`, invalid: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := ControlPlaneOf(Object{Unstructured: parse(t, head+tt.fields), Contract: tt.contract}).Counts()
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.invalid {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}
