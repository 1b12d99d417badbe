"""What our own tests stand on and users do not need: real servers, a simulation, a checker."""
