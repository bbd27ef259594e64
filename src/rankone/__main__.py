from rankone.cli import main

main()
