// Command changed is the program of which a test builds two versions: it counts the
// words of a Kafka topic and writes every total, with its version, to a folder and to
// another topic, exactly once. On request it kills itself when one of the two has
// committed an epoch, so that the other version must go on from there.
//
// It exits with 3 if the start was refused because an epoch came out another way.
package main
