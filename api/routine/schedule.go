package routine
