package kubeadmtest

import (
	"math"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Numbers returns how the numbers of a KubeadmConfigSpec are validated, for object.CheckNumbers. The prefix is that of their paths.
func Numbers(prefix string) map[string]object.Number {
	port := object.Number{Rejected: []any{-1, 65536, math.MaxInt32}, Accepted: []any{0, 65535}}
	timeout := object.Number{Rejected: []any{-time.Second}, Accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}}
	numbers := map[string]object.Number{
		prefix + "clusterConfiguration.certificateValidityPeriodDays":    {Because: "the CRD limits it"},
		prefix + "clusterConfiguration.caCertificateValidityPeriodDays":  {Because: "the CRD limits it"},
		prefix + "diskSetup.partitions[].diskLayout[].percentage":        {Because: "the CRD limits it"},
		prefix + "clusterConfiguration.apiServer.timeoutForControlPlane": timeout,
		prefix + "initConfiguration.localAPIEndpoint.bindPort":           port,
		prefix + "initConfiguration.bootstrapTokens[].ttl": {
			Accepted: []any{-time.Second, time.Duration(math.MaxInt64)}, Because: "a token may have expired; machines join with others",
		},
		prefix + "initConfiguration.bootstrapTokens[].expires":              {Because: "a token may have expired; machines join with others"},
		prefix + "initConfiguration.nodeRegistration.taints[].timeAdded":    {Because: "the API server accepts any time"},
		prefix + "joinConfiguration.nodeRegistration.taints[].timeAdded":    {Because: "the API server accepts any time"},
		prefix + "joinConfiguration.discovery.timeout":                      timeout,
		prefix + "joinConfiguration.controlPlane.localAPIEndpoint.bindPort": port,
		prefix + "verbosity": {Accepted: []any{-1, math.MaxInt32}, Because: "kubeadm accepts any number"},
	}
	for _, component := range []string{"apiServer", "controllerManager", "scheduler", "etcd.local"} {
		divisor := prefix + "clusterConfiguration." + component + ".extraEnvs[].valueFrom.resourceFieldRef.divisor"
		numbers[divisor] = object.Number{Because: "the CRD limits it to quantities"}
	}
	return numbers
}
