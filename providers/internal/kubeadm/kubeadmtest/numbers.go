package kubeadmtest

import (
	"math"

	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Numbers returns how the numbers of a KubeadmConfigSpec are validated, for object.CheckNumbers. The prefix is that of their paths.
func Numbers(prefix string) map[string]object.Number {
	port := object.Number{Rejected: []any{-1, 65536, math.MaxInt32}, Accepted: []any{0, 65535}}
	timeout := object.Number{Rejected: []any{-1, math.MinInt32}, Accepted: []any{0, math.MaxInt32}}
	limited := object.Number{Because: "the CRD limits it"}
	numbers := map[string]object.Number{
		prefix + "clusterConfiguration.certificateValidityPeriodDays":   limited,
		prefix + "clusterConfiguration.caCertificateValidityPeriodDays": limited,
		prefix + "diskSetup.partitions[].diskLayout[].percentage":       limited,
		prefix + "initConfiguration.localAPIEndpoint.bindPort":          port,
		prefix + "initConfiguration.bootstrapTokens[].ttlSeconds": {
			Accepted: []any{-1, math.MaxInt32}, Because: "a token may have expired; machines join with others",
		},
		prefix + "initConfiguration.bootstrapTokens[].expires":              {Because: "a token may have expired; machines join with others"},
		prefix + "initConfiguration.nodeRegistration.taints[].timeAdded":    {Because: "the API server accepts any time"},
		prefix + "joinConfiguration.nodeRegistration.taints[].timeAdded":    {Because: "the API server accepts any time"},
		prefix + "joinConfiguration.controlPlane.localAPIEndpoint.bindPort": port,
		prefix + "verbosity": {Accepted: []any{-1, math.MaxInt32}, Because: "kubeadm accepts any number"},
	}
	for _, configuration := range []string{"initConfiguration", "joinConfiguration"} {
		timeouts := prefix + configuration + ".timeouts."
		for _, name := range []string{
			"kubeletHealthCheck", "kubernetesAPICall", "etcdAPICall", "tlsBootstrap", "discovery", // have no effect, or none with init
		} {
			numbers[timeouts+name+"Seconds"] = limited
		}
		numbers[timeouts+"controlPlaneComponentHealthCheckSeconds"] = timeout
	}
	numbers[prefix+"joinConfiguration.timeouts.tlsBootstrapSeconds"] = timeout
	for _, component := range []string{"apiServer", "controllerManager", "scheduler", "etcd.local"} {
		divisor := prefix + "clusterConfiguration." + component + ".extraEnvs[].valueFrom.resourceFieldRef.divisor"
		numbers[divisor] = object.Number{Because: "the CRD limits it to quantities"}
	}
	return numbers
}
