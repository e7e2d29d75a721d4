package v1beta1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestGetIPFamily(t *testing.T) {
	const v4, otherV4, v6, otherV6 = "192.168.0.0/16", "10.96.0.0/12", "fd00:100:96::/48", "fd00:100:64::/108"

	tests := map[string]struct {
		reason    string
		pods      []string
		services  []string
		noNetwork bool
		want      ClusterIPFamily
		wantErr   string
	}{
		"NoNetwork":     {reason: "a Cluster that says nothing is IPv4", noNetwork: true, want: IPv4IPFamily},
		"NoRanges":      {reason: "a network without ranges is IPv4", want: IPv4IPFamily},
		"PodsV4":        {reason: "without Services, Pods decide", pods: []string{v4}, want: IPv4IPFamily},
		"PodsV6":        {reason: "without Services, Pods decide", pods: []string{v6}, want: IPv6IPFamily},
		"PodsDual":      {reason: "without Services, Pods decide", pods: []string{v4, v6}, want: DualStackIPFamily},
		"ServicesV6":    {reason: "without Pods, Services decide", services: []string{v6}, want: IPv6IPFamily},
		"ServicesDual":  {reason: "without Pods, Services decide", services: []string{v6, v4}, want: DualStackIPFamily},
		"BothV4":        {reason: "both agree", pods: []string{v4}, services: []string{otherV4}, want: IPv4IPFamily},
		"BothV6":        {reason: "both agree", pods: []string{v6}, services: []string{otherV6}, want: IPv6IPFamily},
		"BothDual":      {reason: "order is free", pods: []string{v6, v4}, services: []string{otherV4, otherV6}, want: DualStackIPFamily},
		"DualPodsOnly":  {reason: "dual-stack Pods allow any Services", pods: []string{v4, v6}, services: []string{v4}, want: DualStackIPFamily},
		"TwoOfOne":      {reason: "two ranges of one family are that family", pods: []string{v4, otherV4}, want: IPv4IPFamily},
		"Differ":        {reason: "families must agree", pods: []string{v4}, services: []string{v6}, wantErr: "pods are IPv4 but services are IPv6"},
		"DualServices":  {reason: "single-family Pods forbid dual-stack Services", pods: []string{v4}, services: []string{v4, v6}, wantErr: "services are DualStack"},
		"ThreePods":     {reason: "at most two ranges", pods: []string{v4, v6, otherV4}, wantErr: "spec.clusterNetwork.pods: 3 cidrBlocks"},
		"ThreeServices": {reason: "at most two ranges, whatever the Pods", pods: []string{v4, v6}, services: []string{v4, v6, otherV6}, wantErr: "spec.clusterNetwork.services: 3 cidrBlocks"},
		"NoRange":       {reason: "an address is not a range", pods: []string{"192.168.0.1"}, wantErr: `"192.168.0.1"`},
		"Garbage":       {reason: "every range must parse", pods: []string{v4}, services: []string{"here"}, wantErr: "spec.clusterNetwork.services: cidrBlocks"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{}
			if !tc.noNetwork {
				c.Spec.ClusterNetwork = &ClusterNetwork{}
			}
			if tc.pods != nil {
				c.Spec.ClusterNetwork.Pods = &NetworkRanges{CIDRBlocks: tc.pods}
			}
			if tc.services != nil {
				c.Spec.ClusterNetwork.Services = &NetworkRanges{CIDRBlocks: tc.services}
			}

			got, err := c.GetIPFamily()

			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || got != InvalidIPFamily {
					t.Errorf("%s: got %s and error %v, want an error with %q", tc.reason, got, err, tc.wantErr)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%s: got %s and error %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestIPFamilyNames(t *testing.T) {
	want := map[ClusterIPFamily]string{
		IPv4IPFamily: "IPv4", IPv6IPFamily: "IPv6", DualStackIPFamily: "DualStack", InvalidIPFamily: "InvalidIPFamily",
		ClusterIPFamily(99): "InvalidIPFamily",
	}
	got := map[ClusterIPFamily]string{}
	for family := range want {
		got[family] = family.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("templates and providers compare these names (-want +got):\n%s", diff)
	}
}

func TestAPIEndpoint(t *testing.T) {
	type facts struct {
		Zero, Valid bool
		Text        string
	}
	tests := map[string]struct {
		reason   string
		endpoint APIEndpoint
		want     facts
	}{
		"Unset":    {reason: "nothing set", want: facts{Zero: true, Text: ":0"}},
		"HostOnly": {reason: "half an endpoint is neither", endpoint: APIEndpoint{Host: "h"}, want: facts{Text: "h:0"}},
		"PortOnly": {reason: "half an endpoint is neither", endpoint: APIEndpoint{Port: 1}, want: facts{Text: ":1"}},
		"Name": {
			reason: "host and port make an endpoint", endpoint: APIEndpoint{Host: "example.org", Port: 6443},
			want: facts{Valid: true, Text: "example.org:6443"},
		},
		"IPv6": {
			reason: "an IPv6 address needs brackets before a port", endpoint: APIEndpoint{Host: "fd00::1", Port: 6443},
			want: facts{Valid: true, Text: "[fd00::1]:6443"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := facts{Zero: tc.endpoint.IsZero(), Valid: tc.endpoint.IsValid(), Text: tc.endpoint.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNetworkRangesString(t *testing.T) {
	tests := map[string]struct {
		reason string
		ranges *NetworkRanges
		want   string
	}{
		"Nil":  {reason: "an unset field reads as nothing"},
		"None": {reason: "an empty list reads as nothing", ranges: &NetworkRanges{}},
		"One":  {reason: "one range stands alone", ranges: &NetworkRanges{CIDRBlocks: []string{"a"}}, want: "a"},
		"Two":  {reason: "flags want commas", ranges: &NetworkRanges{CIDRBlocks: []string{"a", "b"}}, want: "a,b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.ranges.String(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestGetClassKey(t *testing.T) {
	c := &Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	if got := c.GetClassKey(); got != (types.NamespacedName{}) {
		t.Errorf("a Cluster without topology has no class, got %s", got)
	}
	c.Spec.Topology = &Topology{Class: "quick"}
	if got, want := c.GetClassKey(), (types.NamespacedName{Namespace: "ns", Name: "quick"}); got != want {
		t.Errorf("the class is in the Cluster's namespace: got %s, want %s", got, want)
	}
	c.Spec.Topology.ClassNamespace = "shared"
	if got, want := c.GetClassKey(), (types.NamespacedName{Namespace: "shared", Name: "quick"}); got != want {
		t.Errorf("the class is in the namespace that the Cluster names: got %s, want %s", got, want)
	}
}
