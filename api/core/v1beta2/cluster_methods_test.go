package v1beta2

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestGetIPFamily checks that the ranges are those of the Cluster; the tests of v1beta1 have all cases of ranges.
func TestGetIPFamily(t *testing.T) {
	c := &Cluster{}
	if got, err := c.GetIPFamily(); err != nil || got != IPv4IPFamily {
		t.Errorf("without ranges: got %s and error %v, want IPv4", got, err)
	}
	c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"fd00:100:64::/108"}
	if got, err := c.GetIPFamily(); err != nil || got != IPv6IPFamily {
		t.Errorf("with Services of IPv6: got %s and error %v, want IPv6", got, err)
	}
	c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.168.0.0/16"}
	if got, err := c.GetIPFamily(); err == nil || got != InvalidIPFamily {
		t.Errorf("with Pods of IPv4 and Services of IPv6: got %s and error %v, want an error", got, err)
	}
}

func TestGetClassKey(t *testing.T) {
	tests := []struct {
		reason string
		class  ClusterClassRef
		want   types.NamespacedName
	}{
		{reason: "a Cluster without topology has no class"},
		{
			reason: "the class is in the Cluster's namespace",
			class:  ClusterClassRef{Name: "quick"},
			want:   types.NamespacedName{Namespace: "ns", Name: "quick"},
		},
		{
			reason: "the class is in another namespace",
			class:  ClusterClassRef{Name: "quick", Namespace: "classes"},
			want:   types.NamespacedName{Namespace: "classes", Name: "quick"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c := &Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			c.Spec.Topology.ClassRef = tt.class
			if got := c.GetClassKey(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestIsDefined(t *testing.T) {
	timeout := int32(0)
	tests := []struct {
		reason       string
		empty, other interface{ IsDefined() bool }
	}{
		{
			reason: "a reference with any field is defined, so that an incomplete one is not taken for an absent one",
			empty:  &ContractVersionedObjectReference{}, other: &ContractVersionedObjectReference{Name: "a"},
		},
		{reason: "a Node has a name", empty: &MachineNodeReference{}, other: &MachineNodeReference{Name: "a"}},
		{reason: "a reference to a template", empty: &ClusterClassTemplateReference{}, other: &ClusterClassTemplateReference{Kind: "A"}},
		{
			reason: "a reference to a template of remediation requests",
			empty:  &MachineHealthCheckRemediationTemplateReference{}, other: &MachineHealthCheckRemediationTemplateReference{Name: "a"},
		},
		{
			reason: "a check with a timeout of 0 is a check",
			empty:  &ControlPlaneClassHealthCheck{},
			other:  &ControlPlaneClassHealthCheck{Checks: MachineHealthCheckChecks{NodeStartupTimeoutSeconds: &timeout}},
		},
		{
			reason: "a limit alone is a check",
			empty:  &MachineDeploymentClassHealthCheck{},
			other: &MachineDeploymentClassHealthCheck{Remediation: MachineDeploymentHealthCheckRemediation{
				TriggerIf: MachineHealthCheckRemediationTriggerIf{UnhealthyInRange: "[1-2]"},
			}},
		},
		{
			reason: "enabling the check of the class does not replace it",
			empty:  &ControlPlaneTopologyHealthCheck{Enabled: new(bool)},
			other:  &ControlPlaneTopologyHealthCheck{Checks: MachineHealthCheckChecks{NodeStartupTimeoutSeconds: &timeout}},
		},
		{
			reason: "the same for workers",
			empty:  &MachineDeploymentTopologyHealthCheck{Enabled: new(bool)},
			other:  &MachineDeploymentTopologyHealthCheck{Checks: MachineHealthCheckChecks{NodeStartupTimeoutSeconds: &timeout}},
		},
		{reason: "a topology with any field", empty: &Topology{}, other: &Topology{Version: "v1.34.0"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if tt.empty.IsDefined() {
				t.Errorf("%#v is defined", tt.empty)
			}
			if !tt.other.IsDefined() {
				t.Errorf("%#v is not defined", tt.other)
			}
		})
	}
}

func TestAPIEndpoint(t *testing.T) {
	if (APIEndpoint{Port: 6443}).IsValid() || (APIEndpoint{Host: "h"}).IsValid() || !(APIEndpoint{Host: "h", Port: 1}).IsValid() {
		t.Error("an endpoint has host and port")
	}
	if !(APIEndpoint{}).IsZero() || (APIEndpoint{Host: "h"}).IsZero() {
		t.Error("the zero endpoint has neither host nor port")
	}
	if got := (APIEndpoint{Host: "fd00::1", Port: 6443}).String(); got != "[fd00::1]:6443" {
		t.Errorf("got %s", got)
	}
	if got := (&NetworkRanges{CIDRBlocks: []string{"a", "b"}}).String(); got != "a,b" {
		t.Errorf("got %s", got)
	}
}
