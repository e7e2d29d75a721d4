package condition_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	ready = clusterv1.ReadyV1Beta1Condition
	infra = clusterv1.InfrastructureReadyV1Beta1Condition
	boot  = clusterv1.BootstrapReadyV1Beta1Condition
	drain = clusterv1.DrainingSucceededV1Beta1Condition

	errorSeverity = clusterv1.ConditionSeverityError
	warning       = clusterv1.ConditionSeverityWarning
	info          = clusterv1.ConditionSeverityInfo
)

var past = metav1.NewTime(time.Date(2024, 4, 16, 9, 0, 0, 0, time.UTC))

// since is c with a transition time.
func since(t metav1.Time, c clusterv1.Condition) clusterv1.Condition {
	c.LastTransitionTime = t
	return c
}

func machine(conditions ...clusterv1.Condition) *clusterv1.Machine {
	return &clusterv1.Machine{Status: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: conditions}}}}
}

func TestConstructors(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		got    clusterv1.Condition
		want   clusterv1.Condition
	}{
		"True": {
			reason: "a True condition has no reason, severity or message",
			got:    condition.True(infra),
			want:   clusterv1.Condition{Type: infra, Status: corev1.ConditionTrue},
		},
		"False": {
			reason: "only a False condition has a severity; the message is formatted",
			got:    condition.False(infra, warning, "Slow", "%d of %d", 1, 3),
			want: clusterv1.Condition{
				Type: infra, Status: corev1.ConditionFalse, Severity: warning, Reason: "Slow", Message: "1 of 3",
			},
		},
		"AMessageThatIsNoFormat": {
			reason: "a message without arguments may contain percent signs",
			got:    condition.False(infra, info, "Busy", "the disk is 100% full"),
			want: clusterv1.Condition{
				Type: infra, Status: corev1.ConditionFalse, Severity: info, Reason: "Busy", Message: "the disk is 100% full",
			},
		},
		"Unknown": {
			reason: "an Unknown condition has no severity",
			got:    condition.Unknown(infra, "InspectionFailed", "asking %s", "etcd"),
			want: clusterv1.Condition{
				Type: infra, Status: corev1.ConditionUnknown, Reason: "InspectionFailed", Message: "asking etcd",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestSet(t *testing.T) {
	stated := since(past, condition.False(infra, info, "Waiting", "for a disk"))
	for name, c := range map[string]struct {
		reason string
		on     clusterv1.Conditions
		set    clusterv1.Condition
		want   clusterv1.Conditions
	}{
		"Same": {
			reason: "stating the same again must not touch the transition time, or every reconcile would write",
			on:     clusterv1.Conditions{stated},
			set:    condition.False(infra, info, "Waiting", "for a disk"),
			want:   clusterv1.Conditions{stated},
		},
		"OtherStatus": {
			reason: "another status is a transition, whose time is filled in at commit",
			on:     clusterv1.Conditions{stated},
			set:    condition.True(infra),
			want:   clusterv1.Conditions{condition.True(infra)},
		},
		"OtherSeverity": {
			reason: "another severity is a transition",
			on:     clusterv1.Conditions{stated},
			set:    condition.False(infra, warning, "Waiting", "for a disk"),
			want:   clusterv1.Conditions{condition.False(infra, warning, "Waiting", "for a disk")},
		},
		"OtherReason": {
			reason: "another reason is a transition",
			on:     clusterv1.Conditions{stated},
			set:    condition.False(infra, info, "Creating", "for a disk"),
			want:   clusterv1.Conditions{condition.False(infra, info, "Creating", "for a disk")},
		},
		"OtherMessage": {
			reason: "another message alone is a transition too",
			on:     clusterv1.Conditions{stated},
			set:    condition.False(infra, info, "Waiting", "for a network"),
			want:   clusterv1.Conditions{condition.False(infra, info, "Waiting", "for a network")},
		},
		"Sorted": {
			reason: "a new condition is put in its place: Ready first, then by type",
			on:     clusterv1.Conditions{since(past, condition.True(ready)), stated},
			set:    condition.True(boot),
			want:   clusterv1.Conditions{since(past, condition.True(ready)), condition.True(boot), stated},
		},
		"ReadyFirst": {
			reason: "Ready is first, although other types precede it alphabetically",
			on:     clusterv1.Conditions{stated},
			set:    condition.True(ready),
			want:   clusterv1.Conditions{condition.True(ready), stated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(clusterv1.Conditions(nil), c.on...)
			on := machine(c.on...)
			condition.Set(on, c.set)
			if diff := cmp.Diff(c.want, on.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(before, c.on); diff != "" {
				t.Errorf("the list that the object had before is shared with the cache and must not change: -want +got:\n%s", diff)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		on     clusterv1.Conditions
		want   clusterv1.Conditions
	}{
		"There": {
			reason: "only the condition of the type goes",
			on:     clusterv1.Conditions{condition.True(boot), condition.True(infra), condition.True(drain)},
			want:   clusterv1.Conditions{condition.True(boot), condition.True(drain)},
		},
		"NotThere": {
			reason: "deleting a missing condition changes nothing",
			on:     clusterv1.Conditions{condition.True(boot)},
			want:   clusterv1.Conditions{condition.True(boot)},
		},
		"None": {reason: "no conditions do not become an empty list"},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(clusterv1.Conditions(nil), c.on...)
			on := machine(c.on...)
			condition.Delete(on, infra)
			if diff := cmp.Diff(c.want, on.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(before, c.on); diff != "" {
				t.Errorf("the list that the object had before must not change: -want +got:\n%s", diff)
			}
		})
	}
}

func TestHasIsTrueIsFalse(t *testing.T) {
	type answers struct{ Has, True, False bool }
	on := machine(condition.True(ready), condition.False(infra, info, "Waiting", ""), condition.Unknown(boot, "Lost", ""))
	for name, c := range map[string]struct {
		reason string
		of     clusterv1.ConditionType
		want   answers
	}{
		"True":    {"Has and IsTrue report a True condition", ready, answers{Has: true, True: true}},
		"False":   {"Has and IsFalse report a False condition", infra, answers{Has: true, False: true}},
		"Unknown": {"an Unknown condition is neither True nor False", boot, answers{Has: true}},
		"Absent":  {"a missing condition is neither", drain, answers{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers{condition.Has(on, c.of), condition.IsTrue(on, c.of), condition.IsFalse(on, c.of)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestGetIsACopy(t *testing.T) {
	on := machine(condition.True(infra))
	condition.Get(on, infra).Status = corev1.ConditionFalse
	if !condition.IsTrue(on, infra) {
		t.Error("changing what Get returned changed the object")
	}
}

// TestMessageWithoutLocalPorts: the same failure has the same message, whatever port the connection was made from.
func TestMessageWithoutLocalPorts(t *testing.T) {
	err := fmt.Errorf("listing Nodes: %w", &net.OpError{
		Op: "read", Net: "tcp", Err: errors.New("connection reset by peer"),
		Source: &net.TCPAddr{IP: net.IPv6loopback, Port: 40123}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443},
	})
	got := condition.False(clusterv1.ReadyV1Beta1Condition, clusterv1.ConditionSeverityWarning, "Failed", "%v; a -> b", err).Message
	if want := "listing Nodes: read tcp 10.0.0.1:6443: connection reset by peer; a -> b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Messages contain what servers, providers and users have written: terminals must not interpret it, and the API server must not change it.
func TestMessagesHaveNoControlCharacters(t *testing.T) {
	const hostile = "a\x1b[2Jb\x00\u0085\u202ec\xff\r\nd\te"
	const want = "a^[[2Jb^@\\u0085\\u202ec\\r\nd\te"
	m := &clusterv1.Machine{}
	for _, c := range []clusterv1.Condition{
		{Type: "T", Status: corev1.ConditionFalse, Message: hostile},
		condition.False("T", clusterv1.ConditionSeverityInfo, "R", "%s", hostile),
		condition.False("T", clusterv1.ConditionSeverityInfo, "R", hostile),
		condition.Unknown("T", "R", "%s", hostile),
		condition.Mirror("T", mirrored(hostile), clusterv1.Condition{}),
	} {
		condition.Set(m, c)
		if got := condition.Get(m, "T").Message; got != want {
			t.Errorf("%+v: message %q, want %q", c, got, want)
		}
		before := m.GetV1Beta1Conditions()
		if condition.Set(m, c); !slices.Equal(before, m.GetV1Beta1Conditions()) {
			t.Errorf("setting it again changes it: %v", m.GetV1Beta1Conditions())
		}
	}
}

// mirrored has the condition Ready with a message.
type mirrored string

func (m mirrored) GetV1Beta1Conditions() clusterv1.Conditions {
	return clusterv1.Conditions{{Type: clusterv1.ReadyV1Beta1Condition, Status: corev1.ConditionFalse, Message: string(m)}}
}
