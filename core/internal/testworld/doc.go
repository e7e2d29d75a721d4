// Package testworld is the environment of controllers in tests: a fake or real API server that records writes, and objects of
// fictional providers. Builders for Cluster API kinds are in the tests of each controller.
package testworld
