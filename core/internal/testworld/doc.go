// Package testworld is what the tests of controllers put around them: an API server, fake or real, that notes what is
// written, and objects of made-up providers. The objects of each kind of our own are built in its own tests.
package testworld
