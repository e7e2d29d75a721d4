package v1beta2

// Conditions and reasons of ExtensionConfigs.
const (
	// ExtensionConfigDiscoveredCondition is True when the server has reported which extensions it offers.
	ExtensionConfigDiscoveredCondition = "Discovered"

	// ExtensionConfigDiscoveredReason means that the extensions are known.
	ExtensionConfigDiscoveredReason = "Discovered"

	// ExtensionConfigNotDiscoveredReason means that the server is unreachable, or that its response is invalid.
	ExtensionConfigNotDiscoveredReason = "NotDiscovered"
)
